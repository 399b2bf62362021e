export { deepFreeze, type EventuallyOptions, eventually, golden } from './assertions.ts';
export { type Certificate, type CertificateOptions, makeCertificate } from './certificates/certificate.ts';
export { makeOcspResponse, type OcspResponseOptions } from './certificates/ocsp-response.ts';
export {
  type ApiServerProxy,
  type ForwardProxy,
  type Interceptor,
  type ProxiedRequest,
  type ProxiedResponse,
  startApiServerProxy,
  startForwardProxy,
} from './http-proxies.ts';
export { firstMismatch, patternBytes } from './sockets/pattern.ts';
export type { TestServer } from './sockets/servers.ts';
export {
  type ByteCountingServer,
  discardServer,
  echoServer,
  freePort,
  type HttpBackend,
  httpBackend,
  patternServer,
} from './sockets/servers.ts';
export { type ConnectionEnd, connectClient, type TestClient, type TestClientOptions } from './sockets/tcp-client.ts';
export { startTcpRelay, type TcpRelay } from './sockets/tcp-relay.ts';
export {
  type Exit,
  type SpawnedProcess,
  type SpawnOptions,
  spawnProcess,
  withParentDeathSignal,
} from './spawn-process.ts';
export { type TemporaryDirectory, temporaryDirectory } from './temporary-directory.ts';
