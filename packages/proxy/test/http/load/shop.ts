// The Services of the load tests, their endpoints and their clients. `web` has all requests of one host, except those of `api`, which
// has a path prefix.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { Endpoint } from '@weir/model';
import { type Certificate, makeCertificate, type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { AUTHORITY, certificateEntryFor } from '../../fixtures/certificates.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { HttpLoad, type LoadClient } from './http-load.ts';
import { Http1Client, overTcp, overTls } from './http1-client.ts';
import { Http2Client } from './http2-client.ts';

const HOST = 'shop.example';
const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const ENDPOINT_PROGRAM = fileURLToPath(new URL('./endpoint-process.ts', import.meta.url));

export interface ShopEndpoints extends AsyncDisposable {
  readonly process: SpawnedProcess;
  readonly endpoints: Readonly<Record<string, Endpoint>>;
}

/** Starts endpoints of both Services, which name `generation` in their answers. */
export async function startEndpoints(generation: string): Promise<ShopEndpoints> {
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', ENDPOINT_PROGRAM, generation, 'web', 'api'],
    readyWhen: /\}\n/,
    mayExit: true,
  });
  const ports: Record<string, number> = JSON.parse(child.stdout());
  const endpoints = Object.entries(ports).map(([service, port]) => [service, { address: '127.0.0.1', port }]);
  return {
    process: child,
    endpoints: Object.fromEntries(endpoints),
    [Symbol.asyncDispose]: () => child.close(),
  };
}

export const newCertificate = (): Certificate => makeCertificate({ name: HOST, names: [HOST], issuer: AUTHORITY });

export interface ShopOptions {
  readonly endpoints: ShopEndpoints;
  readonly certificate: Certificate;
  /** The path prefix of `api`. */
  readonly prefix: string;
}

/** Returns the Services at the port of HTTP and that of HTTPS. */
export function shopServices(options: ShopOptions): TestService[] {
  return [HTTP_PORT, HTTPS_PORT].flatMap((port) => ['web', 'api'].map((name) => shopService(name, port, options)));
}

function shopService(name: string, port: number, { endpoints, certificate, prefix }: ShopOptions): TestService {
  const tls = { secret: 'web', ports: [{ port, alpn: ['h2', 'http/1.1'] }], clientCaSecret: null };
  const isSecure = port === HTTPS_PORT;
  return {
    name: `${name}-${port}`,
    port,
    shared: true,
    endpoints: [endpoints.endpoints[name] ?? assert.fail(`no endpoint of ${name}`)],
    ...(isSecure ? { certificate: certificateEntryFor(certificate) } : {}),
    settings: {
      httpPorts: [port],
      ...(name === 'api' ? { http2Ports: [port] } : {}),
      hosts: [HOST],
      ...(name === 'api' ? { pathPrefix: prefix } : {}),
      ...(isSecure ? { tls } : {}),
    },
  };
}

/** Returns the options of a client that verifies the certificate of the shop. */
export const secureShop = (address: string): { host: string; port: number; ca: string; servername: string } => ({
  host: address,
  port: HTTPS_PORT,
  ca: AUTHORITY.certificate,
  servername: HOST,
});

/** Returns a load of all kinds of clients. */
export function shopLoad(address: string): HttpLoad {
  const http = overTcp({ host: address, port: HTTP_PORT });
  const https = overTls(secureShop(address));
  const { ca, servername } = secureShop(address);
  const h2 = { name: 'h2', url: `https://${address}:${HTTPS_PORT}`, tls: { ca, servername }, streams: 5 };
  const clients: LoadClient[] = [
    ...Array.from({ length: 4 }, () => new Http1Client({ name: 'kept', connect: http, pipelined: 1, isKept: true })),
    ...Array.from({ length: 2 }, () => new Http1Client({ name: 'posts', connect: http, pipelined: 4, isKept: true })),
    ...Array.from({ length: 2 }, () => new Http1Client({ name: 'once', connect: http, pipelined: 1, isKept: false })),
    new Http1Client({ name: 'kept over TLS', connect: https, pipelined: 1, isKept: true }),
    new Http1Client({ name: 'once over TLS', connect: https, pipelined: 1, isKept: false }),
    ...Array.from({ length: 2 }, () => new Http2Client(h2)),
  ];
  return new HttpLoad({ clients, targets: ['/', '/api/x', '/v2/x'].map((path) => ({ host: HOST, path })) });
}

/** Says which Services and which generations of their endpoints may answer requests from now on. */
export function expectAnswers(
  load: HttpLoad,
  generations: readonly string[],
  services: { readonly api: readonly string[]; readonly v2: readonly string[] },
): void {
  const by = (names: readonly string[]): string[] =>
    names.flatMap((name) => generations.map((each) => `${name} ${each}`));
  load.expected
    .set('/', by(['web']))
    .set('/api/x', by(services.api))
    .set('/v2/x', by(services.v2));
}
