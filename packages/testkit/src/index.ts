export { type Certificate, type CertificateOptions, makeCertificate } from './certificates/make-certificate.ts';
export { ECHO_IMAGE } from './cluster/images.ts';
export type { ClusterNode } from './cluster/node.ts';
export { type Cluster, type ClusterOptions, startCluster } from './cluster/start-cluster.ts';
export { deepFreeze } from './deep-freeze.ts';
export { type EventuallyOptions, eventually } from './eventually.ts';
export { type AggregatedApi, aggregatedApiManifest } from './fixtures/aggregated-api.ts';
export {
  type ApiServerProxy,
  type Interceptor,
  type ProxiedRequest,
  type ProxiedResponse,
  startApiServerProxy,
} from './fixtures/api-proxy.ts';
export type { AuditedRequest } from './fixtures/audit.ts';
export {
  type ApiServer,
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from './fixtures/control-plane.ts';
export { type ForwardProxy, startForwardProxy } from './fixtures/forward-proxy.ts';
export { type Redis, type RedisOptions, startRedis } from './fixtures/redis.ts';
export { startRedisCluster } from './fixtures/redis-cluster.ts';
export type { RedisGroup, RedisGroupOptions } from './fixtures/redis-group.ts';
export { startRedisSentinel } from './fixtures/redis-sentinel.ts';
export { freePort } from './free-port.ts';
export { golden } from './golden.ts';
export { type WeirImages, weirImages } from './images/weir-images.ts';
export { insideSandbox, requireSandbox } from './namespace/inside-machine.ts';
export { insideNamespace, type NamespaceOptions } from './namespace/inside-namespace.ts';
export { findProgram } from './programs/find-program.ts';
export type { ProgramOrSet } from './programs/needs.ts';
export type { ProgramLookup, ProgramName } from './programs/program.ts';
export { type ProvideOptions, providePrograms } from './programs/provide-programs.ts';
export { programPath, requireProgram, type SkipOptions } from './programs/require-program.ts';
export type { TestServer } from './sockets/closable-server.ts';
export { firstMismatch, patternBytes } from './sockets/pattern.ts';
export { type ConnectionEnd, connectClient, type TestClient, type TestClientOptions } from './sockets/raw-client.ts';
export {
  type ByteCountingServer,
  discardServer,
  echoServer,
  type HttpBackend,
  httpBackend,
  patternServer,
} from './sockets/servers.ts';
export { type Exit, type SpawnedProcess, type SpawnOptions, spawnProcess } from './spawn-process.ts';
export { type TemporaryDirectory, temporaryDirectory } from './temporary-directory.ts';
export { requirePreviousVersion, unpackPreviousVersion } from './versions/previous-version.ts';
