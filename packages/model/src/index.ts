export * from './data-plane.ts';
export * from './fleet-settings.ts';
export {
  EXCLUDE_NODE_LABEL,
  isExcludedNode,
  isLoadBalancerNode,
  NODE_ADDRESSES_ANNOTATION,
  type NodeAddresses,
  nodeAddressesOf,
  nodePoolOf,
} from './node-rules.ts';
export * from './policy.ts';
export * from './port-range.ts';
export * from './precedence.ts';
export * from './problem.ts';
export * from './reason.ts';
export { parseSharedPort, reservedSharedPorts, SHARED_PORT_FORMAT } from './reserved-ports.ts';
export { parseDuration } from './settings/duration.ts';
export { type ParsedQuantity, parseQuantity } from './settings/quantity.ts';
export * from './settings/service-settings.ts';
export { type ParsedSettings, serviceSettingsFor } from './settings/settings-for.ts';
export * from './snapshot.ts';
export * from './tls/validity.ts';
export * from './translate/cutoffs.ts';
export * from './translate/held.ts';
export { isOwned } from './translate/owned.ts';
export { type ServiceStatus, type Translation, translate } from './translate/translate.ts';
export { Translator, type TranslatorOutput } from './translate/translator.ts';
export { type Condition, truncateMessage } from './view/condition.ts';
export * from './view/exhausted.ts';
export * from './view/fleet.ts';
export * from './view/fleet-views.ts';
export * from './view/policy-view.ts';
export * from './view/port-view.ts';
export * from './view/proxy-view.ts';
export type { PortError, ServiceState, ServiceView } from './view/service-view.ts';
export * from './view/tenant-view.ts';
export * from './view/undecided.ts';
