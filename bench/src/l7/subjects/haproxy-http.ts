import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { Subject } from '../../subjects/subject.ts';
import type { L7Listener, L7Ports } from '../listeners.ts';
import { type BenchmarkRoute, ROUTES } from '../routes.ts';
import { freeL7Ports, type L7SubjectInput } from './subject-input.ts';

/** Starts HAProxy in HTTP mode with one thread. */
export async function startHaproxyHttp({ certificate, ...backends }: L7SubjectInput): Promise<Subject<L7Listener>> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-haproxy-http')).path;
  const ports = await freeL7Ports();
  writeFileSync(join(directory, 'certificate.pem'), certificate.chain + certificate.key);
  writeFileSync(join(directory, 'routes.map'), haproxyRoutes(ROUTES));
  const configuration = join(directory, 'haproxy.cfg');
  writeFileSync(configuration, haproxyHttpConfiguration({ directory, ports, ...backends }));
  const args = ['-db', '-f', configuration];
  const haproxy = cleanup.use(
    await spawnProcess({ command: programPath('haproxy'), args, name: 'haproxy', mayExit: true }),
  );
  const started = cleanup.move();
  return {
    name: 'haproxy',
    description:
      'HAProxy, mode http, 1 thread, http-reuse always, splice-auto; routes: a map of hosts and path prefixes, a backend per route',
    pid: haproxy.pid,
    output: haproxy.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Returns a map file from host and path prefix to the name of a backend. HAProxy finds the longest prefix in a tree. */
export function haproxyRoutes(routes: readonly BenchmarkRoute[]): string {
  return routes.map(({ backend, host, pathPrefix }) => `${host}${pathPrefix}/ ${backend}\n`).join('');
}

export type ConfigurationInput = Omit<L7SubjectInput, 'certificate'> & {
  readonly directory: string;
  readonly ports: L7Ports;
};

export function haproxyHttpConfiguration(input: ConfigurationInput): string {
  const { directory, ports, backendPort, grpcBackendPort } = input;
  return `
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  option splice-auto
  option forwardfor
  backlog 4096
  http-reuse always
  timeout connect 5s
  timeout client 10m
  timeout server 10m
${frontend('http', `127.0.0.1:${ports.http}`)}
  default_backend endpoints
${frontend('routes', `127.0.0.1:${ports.routes}`)}
  use_backend %[base,map_beg(${directory}/routes.map)]
${frontend('https', `127.0.0.1:${ports.https} ssl crt ${directory}/certificate.pem alpn http/1.1`)}
  default_backend endpoints
${frontend('http2', `127.0.0.1:${ports.http2} proto h2`)}
  default_backend endpoints
${frontend('grpc', `127.0.0.1:${ports.grpc} proto h2`)}
  default_backend calls
backend endpoints
  server endpoint 127.0.0.1:${backendPort}
backend calls
  server endpoint 127.0.0.1:${grpcBackendPort} proto h2
${ROUTES.map(({ backend }) => `backend ${backend}\n  server endpoint 127.0.0.1:${backendPort}`).join('\n')}
`;
}

/** Returns a frontend that writes the same fields as Weir, except traceparent. */
function frontend(name: string, bind: string): string {
  return `frontend ${name}
  bind ${bind}
  http-request set-header X-Forwarded-Proto ${name === 'https' ? 'https' : 'http'}
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header X-Forwarded-Port %[dst_port]
  http-request set-header X-Request-Id %[uuid()]
  http-request add-header Via "1.1 haproxy"
  http-response add-header Via "1.1 haproxy"`;
}
