export * from './data-plane.ts';
export * from './fleet-settings.ts';
export {
  ADDRESSES_ANNOTATION,
  EXCLUDED_LABEL,
  isExcludedNode,
  isLabelledNode,
  type NodeAddresses,
  nodeAddressesOf,
  nodePoolOf,
} from './node-rules.ts';
export * from './policy.ts';
export * from './port-range.ts';
export * from './precedence.ts';
export * from './problem.ts';
export * from './reason.ts';
export { parseSharedPort, reservedAndShared, SHARED_PORT_ALLOWED } from './reserved-ports.ts';
export { parseDuration } from './settings/duration.ts';
export { parseQuantity, type QuantityReading } from './settings/quantity.ts';
export * from './settings/service-settings.ts';
export { type ParsedSettings, settingsFor } from './settings/settings-for.ts';
export * from './snapshot.ts';
export * from './tls/validity.ts';
export * from './translate/cutoffs.ts';
export * from './translate/held.ts';
export { isOwned } from './translate/owned.ts';
export { type ServiceStatus, type Translation, translate } from './translate/translate.ts';
export { type Decided, Translator } from './translate/translator.ts';
export { type Condition, truncate } from './view/condition.ts';
export * from './view/exhausted.ts';
export * from './view/fleet.ts';
export * from './view/fleet-views.ts';
export * from './view/policy-view.ts';
export * from './view/port-view.ts';
export * from './view/proxy-view.ts';
export type { PortError, ServiceState, ServiceView } from './view/service-view.ts';
export * from './view/tenant-view.ts';
export * from './view/undecided.ts';
