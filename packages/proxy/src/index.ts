export { OUTCOMES, type Outcome } from './metering/outcome.ts';
export { trustedProxyWarnings } from './protocol/trusted-proxy-warnings.ts';
export { kernelWarnings } from './status/host-warnings.ts';
export type { ProxySelfView, ServiceCount } from './status/proxy-view.ts';
export type { ProxyOptions } from './supervisor/proxy-settings.ts';
export { type RunningProxy, startProxy } from './supervisor/start-proxy.ts';
export {
  DEFAULT_TRANSPORT,
  TLS_KINDS,
  type TlsKind,
  TRANSPORT_KINDS,
  type TransportKind,
} from './transport/choose-transport.ts';
