export { type Cluster, type ClusterOptions, startCluster } from './cluster/cluster.ts';
export type { ClusterNode } from './cluster/node.ts';
export { ECHO_IMAGE } from './cluster/pod-images.ts';
export { type WeirImages, weirImages } from './images/build-images.ts';
export { insideNamespace, type NamespaceOptions } from './isolation/network-namespace.ts';
export { insideSandbox, requireSandbox } from './isolation/sandbox.ts';
export { type AggregatedApi, aggregatedApiManifest } from './kubernetes/aggregated-api.ts';
export type { AuditedRequest } from './kubernetes/audit.ts';
export {
  type ApiServer,
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
  waitForCustomResources,
} from './kubernetes/control-plane.ts';
export {
  type PreviousVersion,
  requirePreviousVersions,
  unpackPreviousVersion,
} from './previous-version/previous-version.ts';
export type { ProgramLookup, ProgramName } from './programs/catalog.ts';
export { findProgram } from './programs/find-program.ts';
export { type ProvideOptions, providePrograms } from './programs/provide-programs.ts';
export type { ProgramOrSet } from './programs/require-program.ts';
export { programPath, requireProgram, type SkipOptions } from './programs/require-program.ts';
export { type Redis, type RedisOptions, startRedis } from './redis/redis.ts';
export { startRedisCluster } from './redis/redis-cluster.ts';
export { type RedisGroup, type RedisGroupOptions, sendRedisCommand } from './redis/redis-group.ts';
export { startRedisSentinel } from './redis/redis-sentinel.ts';
