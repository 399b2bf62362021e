import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Certificate, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { Subject } from '../../subjects/subject.ts';
import { L7_LISTENERS, type L7Listener, type L7Ports } from '../listeners.ts';
import { type BenchmarkRoute, ROUTES, ROUTES_BY_HOST } from '../routes.ts';
import { freeL7Ports, type L7SubjectInput } from './subject-input.ts';

export async function startEnvoyHttp(input: L7SubjectInput): Promise<Subject<L7Listener>> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-envoy-http'));
  const ports = await freeL7Ports();
  const configuration = join(directory.path, 'envoy.json');
  writeFileSync(configuration, JSON.stringify(envoyHttpConfiguration(ports, input)));
  const args = ['--config-path', configuration, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'off'];
  const envoy = cleanup.use(await spawnProcess({ command: programPath('envoy'), args, name: 'envoy', mayExit: true }));
  const started = cleanup.move();
  return {
    name: 'envoy',
    description:
      'Envoy, HTTP connection manager and router, --concurrency 1, no admin, no access log; routes: a virtual host per host, a cluster per route',
    pid: envoy.pid,
    output: envoy.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

const EXTENSIONS = 'type.googleapis.com/envoy.extensions';
const UNLIMITED = 1_000_000_000;

export function envoyHttpConfiguration(
  ports: L7Ports,
  { backendPort, grpcBackendPort, certificate }: L7SubjectInput,
): object {
  return {
    static_resources: {
      listeners: L7_LISTENERS.map((name) => listener(name, { port: ports[name], certificate })),
      clusters: [
        cluster('endpoints', backendPort),
        { ...cluster('calls', grpcBackendPort), ...HTTP2_TO_ENDPOINTS },
        ...ROUTES.map(({ backend }) => cluster(backend, backendPort)),
      ],
    },
  };
}

const HTTP2_TO_ENDPOINTS = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`,
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

function cluster(name: string, port: number): object {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    circuit_breakers: {
      thresholds: [{ max_connections: UNLIMITED, max_pending_requests: UNLIMITED, max_requests: UNLIMITED }],
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: addressFor(port) } }] }],
    },
  };
}

function listener(
  name: L7Listener,
  { port, certificate }: { readonly port: number } & Pick<L7SubjectInput, 'certificate'>,
): object {
  return {
    name,
    address: addressFor(port),
    tcp_backlog_size: 4096,
    filter_chains: [
      {
        filters: [
          { name: 'envoy.filters.network.http_connection_manager', typed_config: connectionManager(name, port) },
        ],
        ...(name === 'https' ? { transport_socket: tlsSocket(certificate) } : {}),
      },
    ],
  };
}

/** Returns a connection manager that writes the same fields as Weir, except traceparent. Envoy writes X-Request-Id by default. */
function connectionManager(name: L7Listener, port: number): object {
  const router = {
    '@type': `${EXTENSIONS}.filters.http.router.v3.Router`,
    suppress_envoy_headers: true,
  };
  const hosts = [...ROUTES_BY_HOST].map(([host, routes]) => virtualHost(host, routes));
  const all = virtualHost('*', [{ backend: name === 'grpc' ? 'calls' : 'endpoints', host: '*', pathPrefix: '' }]);
  return {
    '@type': `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: name,
    use_remote_address: true,
    via: '1.1 envoy',
    route_config: {
      name,
      virtual_hosts: name === 'routes' ? hosts : [all],
      request_headers_to_add: [
        {
          header: { key: 'X-Forwarded-Host', value: '%REQ(:AUTHORITY)%' },
          append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
        },
        { header: { key: 'X-Forwarded-Port', value: String(port) }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
      ],
    },
    http_filters: [{ name: 'envoy.filters.http.router', typed_config: router }],
  };
}

function virtualHost(host: string, routes: readonly BenchmarkRoute[]): object {
  return {
    name: host,
    domains: [host],
    routes: routes.map(({ backend, pathPrefix }) => ({
      match: { prefix: `${pathPrefix}/` },
      route: { cluster: backend, timeout: '0s' },
    })),
  };
}

function tlsSocket({ chain, key }: Pick<Certificate, 'chain' | 'key'>): object {
  const certificates = [{ certificate_chain: { inline_string: chain }, private_key: { inline_string: key } }];
  const common = { tls_certificates: certificates, alpn_protocols: ['http/1.1'] };
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': `${EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext`,
      common_tls_context: common,
    },
  };
}

function addressFor(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
