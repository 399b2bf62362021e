// The part of the model that proxies and stores use. Translation, settings and views are exported only by `index.ts`, because
// every worker of a proxy loads all modules of this file, and each module delays the start of the proxy.
export { AFFINITY_TABLE_BYTES, type AffinityTable, createAffinityTable } from './balance/affinity-table.ts';
export { type Balancer, type BalancerOptions, untriedFrom } from './balance/balancer.ts';
export * from './balance/create-balancer.ts';
export { buildPool, EMPTY_POOL, type EndpointPool, type ZoneFilter } from './balance/endpoint-pool.ts';
export { createEndpointStats, type EndpointStats, EXCLUDED, updateEndpointStats } from './balance/endpoint-stats.ts';
export { hashPair, hashText } from './balance/hash.ts';
export { fillMaglevSlots, MAGLEV_SLOTS, MAX_MAGLEV_ENDPOINTS, type MaglevTable } from './balance/maglev-table.ts';
export * from './clients/space-saving.ts';
export * from './clients/tenant-clients.ts';
export { compareText } from './compare.ts';
export { formatDuration, parseDuration } from './duration.ts';
export * from './health/ejection.ts';
export * from './health/port-health.ts';
export * from './heartbeat.ts';
export {
  type ClientSide,
  type HeaderEdit,
  locationFor,
  type RewrittenRequest,
  type RouteFilters,
  rewriteRequest,
} from './http/apply-filters.ts';
export { chooseBackend } from './http/backend-choice.ts';
export type { RoutedRequest, RouteMatch } from './http/path-index.ts';
export * from './http/request-target.ts';
export * from './http/retry-budget.ts';
export * from './http/route.ts';
export * from './http/router.ts';
export { httpRouteOf } from './http/service-route.ts';
export * from './limits/demand-per-second.ts';
export * from './limits/fleet-rate.ts';
export * from './limits/fleet-share.ts';
export * from './limits/token-bucket.ts';
export {
  type Cidr,
  canonicalAddress,
  clientKeyFor,
  formatAddressWords,
  ipv6Bytes,
  isSpecialAddress,
  parseCidr,
  parseUnmappedAddressWords,
} from './match/address.ts';
export * from './match/atomic-groups.ts';
export { findHost, isHostAllowed, parseHost } from './match/hosts.ts';
export type { RouteOfRequest, RouteTarget } from './match/listener-http-route.ts';
export type { ListenerRoutes } from './match/listener-routes.ts';
export { createMatcher, type Matcher, movedResources, patchMatcher } from './match/matcher.ts';
export { compileNetworks, type NetworkSet } from './match/networks.ts';
export {
  type Client,
  type EndpointTlsTerms,
  endpointsExpectTls,
  endpointsSpeakHttp2,
  endpointTlsTerms,
  expectsClientHello,
  hasSameCredentials,
  httpsRedirectPort,
  isBackend,
  type ListenerKey,
  listenerKey,
  listenerKeyOfEntryId,
  listenerKeyOfRoute,
  PLAIN_HTTP_PORT,
  type Route,
  type RouteKey,
  type RouteRefusal,
  relaysHttp,
  routeKey,
  routeRefusalFor,
  terminatingTlsPort,
} from './match/route.ts';
export type { TenantLimits } from './policy.ts';
export * from './propagation.ts';
export type {
  AccessLogSettings,
  HealthCheckSettings,
  HttpHealthCheck,
  ServiceLimits,
  ServiceSettings,
} from './settings/service-settings.ts';
export * from './suspension.ts';
export * from './table/codec.ts';
export * from './table/entry.ts';
export {
  apply,
  type Change,
  diff,
  EMPTY_TABLE,
  entriesOf,
  entryIdOf,
  type RoutingTable,
  tableOf,
  tableToJson,
} from './table/table.ts';
export * from './usage/journal.ts';
export * from './usage/limit-refusals.ts';
export * from './usage/other-services.ts';
export * from './usage/period.ts';
export * from './usage/report.ts';
export * from './usage/series.ts';
