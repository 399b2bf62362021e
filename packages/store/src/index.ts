export type * from './contract.ts';
export { StoreError, type StoreErrorCode } from './error.ts';
export { FLEET_NAME_FORMAT } from './fleet-name.ts';
export { FLEET_SECRET_FORMAT } from './fleet-secret.ts';
export { type FollowSuspensionsOptions, followSuspensions, type KnownSuspensions } from './follow/follow-cutoffs.ts';
export { type AppliedRevision, type FollowTableOptions, followTable } from './follow/follow-table.ts';
export { mergeSuspensions } from './follow/merge-cutoffs.ts';
export type { PositionedTable } from './follow/table-chain.ts';
export {
  DEFAULT_KEPT_REVISIONS,
  HEARTBEAT_TTL_MS,
  MAX_BYTES_PER_REVISION,
  MAX_CHANGES_PER_REVISION,
} from './limits.ts';
export { createMemoryStore, type MemoryFaults, MemoryStore, type MemoryStoreOptions } from './memory/memory-store.ts';
export { openMemoryStore, type PersistentMemoryStoreOptions } from './memory/open-memory-store.ts';
export { isSamePosition } from './position.ts';
export { type PublishOutcome, TablePublisher, type TablePublisherOptions } from './publish/table-publisher.ts';
export type { RedisAccess } from './redis/access.ts';
export { inspectRedis, type RedisInspection } from './redis/inspect-redis.ts';
export { openRedisStore, type RedisStoreOptions } from './redis/open-redis-store.ts';
export { REDIS_SETTINGS, redisAccessFrom, withRedisAccess } from './redis/redis-settings.ts';
export { type RedisUser, redisUsersFor } from './redis/users.ts';
export { rethrowRefusedAsUsage } from './refused-as-usage.ts';
export { PERIOD_LENGTHS, type PeriodLength } from './retention.ts';
