export { OUTCOMES, type Outcome } from './counters/outcome.ts';
export { kernelWarnings } from './kernel-settings.ts';
export { trustedProxyWarnings } from './proxy-protocol/trust-advice.ts';
export type { ProxyOptions } from './proxy-settings.ts';
export type { ProxySelfView, ServiceCount } from './proxy-view.ts';
export { type RunningProxy, startProxy } from './start-proxy.ts';
