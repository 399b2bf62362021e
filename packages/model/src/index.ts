export { AFFINITY_BYTES, type AffinityMemory, createAffinityMemory } from './balance/affinity-table.ts';
export { type Balancer, type BalancerTools, isTried } from './balance/balancer.ts';
export * from './balance/create-balancer.ts';
export { createLoad, type EndpointLoad, UNUSED } from './balance/endpoint-load.ts';
export { arrangePool, EMPTY_POOL, type EndpointPool, type Preference } from './balance/endpoint-pool.ts';
export { hashPair, hashText } from './balance/hash.ts';
export type { MaglevTable } from './balance/maglev.ts';
export { fillMaglevSlots, MAGLEV_SLOTS, MOST_MAGLEV_ENDPOINTS } from './balance/maglev-slots.ts';
export { renewLoads } from './balance/renew-loads.ts';
export * from './cutoff.ts';
export * from './fleet-settings.ts';
export * from './health/check-state.ts';
export * from './health/ejection.ts';
export * from './health/judge-port.ts';
export * from './heartbeat.ts';
export * from './limit/client-network.ts';
export * from './limit/pace.ts';
export * from './limit/token-bucket.ts';
export { type Cidr, canonicalAddress, isSpecialAddress, parseCidr } from './match/cidr.ts';
export type { Client } from './match/client.ts';
export * from './match/hosts.ts';
export { ipv6Bytes } from './match/ipv6-bytes.ts';
export type { ListenerRoutes } from './match/listener-routes.ts';
export { createMatcher, endpointKey, holdersOf, type Matcher, patchMatcher } from './match/matcher.ts';
export { compileNetworks, type Networks } from './match/networks.ts';
export * from './match/refusal.ts';
export * from './match/route.ts';
export * from './match/steps.ts';
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
export * from './propagation.ts';
export * from './reason.ts';
export { parseSharedPort, reservedAndShared, SHARED_PORT_ALLOWED } from './reserved-ports.ts';
export { parseDuration } from './settings/duration.ts';
export { parseQuantity, type QuantityReading } from './settings/quantity.ts';
export * from './settings/service-settings.ts';
export { type ParsedSettings, settingsFor } from './settings/settings-for.ts';
export * from './snapshot.ts';
export * from './table/apply.ts';
export * from './table/codec.ts';
export * from './table/diff.ts';
export * from './table/entry.ts';
export * from './table/table.ts';
export * from './tls/validity.ts';
export * from './translate/cutoffs.ts';
export * from './translate/held.ts';
export { isOwned } from './translate/owned.ts';
export { type ServiceStatus, type Translation, translate } from './translate/translate.ts';
export { type Decided, Translator } from './translate/translator.ts';
export * from './usage/counters.ts';
export * from './usage/journal.ts';
export * from './usage/journal-text.ts';
export * from './usage/period.ts';
export * from './usage/report.ts';
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
