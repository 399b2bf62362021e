export type { ProxyOptions } from './proxy-settings.ts';
export type { ProxySelfView, ServiceCount } from './proxy-view.ts';
export { OUTCOMES, type Outcome } from './relay/outcome.ts';
export { type RunningProxy, startProxy } from './start-proxy.ts';
