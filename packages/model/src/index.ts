export { isCalendarDay } from './calendar-day.ts';
export * from './certificate-validity.ts';
export { closestName } from './closest-name.ts';
export * from './data-plane.ts';
export * from './fleet-settings.ts';
export { type HostConflict, type HostOwners, hostOwners } from './http/host-owners.ts';
export { httpRouteMistakes } from './http/route-mistakes.ts';
export * from './policy.ts';
export * from './policy-selection.ts';
export * from './port-range.ts';
export * from './problem.ts';
export * from './reason.ts';
export { parseSharedPort, reservedSharedPorts, SHARED_PORT_FORMAT } from './reserved-ports.ts';
export * from './rules/rate-window.ts';
export * from './rules/rule.ts';
export * from './rules/rule-text.ts';
export * from './rules/step-rule.ts';
export type { AnnotationGrammar } from './settings/annotation-grammar.ts';
export { annotationGrammars } from './settings/annotations.ts';
export { type ParsedSettings, serviceSettingsFor } from './settings/parse-settings.ts';
export { type ParsedQuantity, parseQuantity } from './settings/quantity.ts';
export * from './settings/service-settings.ts';
export * from './snapshot.ts';
export * from './suspension.ts';
export * from './translate/allocate/allocations.ts';
export {
  EXCLUDE_NODE_LABEL,
  isExcludedNode,
  isLoadBalancerNode,
  NODE_ADDRESSES_ANNOTATION,
  type NodeAddresses,
  nodeAddressesOf,
  nodePoolOf,
} from './translate/nodes.ts';
export { isIgnored, isOwned } from './translate/owned-services.ts';
export { type Tenant, tenancyFor } from './translate/tenancy.ts';
export { type ServiceStatus, type Translation, translate } from './translate/translate.ts';
export { Translator, type TranslatorOutput } from './translate/translator.ts';
export * from './usage/series-plan.ts';
export { type Condition, truncateMessage } from './view/condition.ts';
export * from './view/fleet-state.ts';
export { NodeSilence } from './view/node-silence.ts';
export * from './view/policy-view.ts';
export * from './view/proxy-view.ts';
export { ReportedViews } from './view/reported-views.ts';
export {
  type PortError,
  type PortView,
  type ServiceState,
  type ServiceView,
  storeUnreachableViewsFor,
  withForeignController,
} from './view/service-view.ts';
export * from './view/service-views.ts';
export * from './view/tenant-view.ts';
export * from './view/traffic-level.ts';
export * from './view/usage-notices.ts';
