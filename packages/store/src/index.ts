export type * from './contract.ts';
export { rethrowRefusedAsUsage, StoreError, type StoreErrorCode } from './errors.ts';
export { FLEET_NAME_FORMAT, FLEET_SECRET_FORMAT } from './fleet.ts';
export {
  type FollowSuspensionsOptions,
  followSuspensions,
  type KnownSuspensions,
  mergeSuspensions,
} from './follow/follow-suspensions.ts';
export type { PositionedTable } from './follow/follow-table.ts';
export { type AppliedRevision, type FollowTableOptions, followTable } from './follow/follow-table.ts';
export { RefusalWatch } from './follow/refusal-watch.ts';
export {
  AUDIT_PAGE_SIZE,
  DEFAULT_KEPT_REVISIONS,
  HEARTBEAT_TTL_MS,
  LEASE_REGISTRATION_MS,
  MAX_BYTES_PER_REVISION,
  MAX_CHANGES_PER_REVISION,
  MAX_LEASE_SILENCE_MS,
  MAX_LEASES_PER_EXCHANGE,
} from './limits.ts';
export { exchangeLeases, type LeaseContent, newLeaseContent } from './memory/memory-leases.ts';
export { type MemoryFaults, MemoryStore, type MemoryStoreOptions } from './memory/memory-store.ts';
export { openMemoryStore, type PersistentMemoryStoreOptions } from './memory/open-memory-store.ts';
export { isSamePosition } from './position.ts';
export { type PublishOutcome, TablePublisher, type TablePublisherOptions } from './publish/table-publisher.ts';
export { inspectRedis, type RedisInspection } from './redis/connection/inspect-redis.ts';
export type { RedisAccess } from './redis/connection/redis-target.ts';
export { type RedisUser, redisUsersFor } from './redis/keys.ts';
export { openRedisStore, type RedisStoreOptions } from './redis/open-redis-store.ts';
export { REDIS_SETTINGS, redisAccessFrom, withRedisAccess } from './redis/redis-settings.ts';
export { addStoreMetrics } from './store-metrics.ts';
export { isSuspension } from './suspension-codec.ts';
