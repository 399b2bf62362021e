import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import { freePorts } from './free-ports.ts';
import { BACKEND_NAMES, type BackendName, type BackendPorts, DATAGRAM_BUFFER_BYTES, type Subject } from './subject.ts';

export async function startEnvoy(backends: BackendPorts): Promise<Subject> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-envoy'));
  const ports = await freePorts();
  const configuration = join(directory.path, 'envoy.json');
  writeFileSync(configuration, JSON.stringify(envoyConfiguration(ports, backends)));
  const args = ['--config-path', configuration, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'off'];
  const envoy = cleanup.use(await spawnProcess({ command: programPath('envoy'), args, name: 'envoy', mayExit: true }));
  const started = cleanup.move();
  return {
    name: 'envoy',
    description: 'Envoy, tcp_proxy and udp_proxy, --concurrency 1, no admin, no access log',
    pid: envoy.pid,
    output: envoy.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

const FILTER_TYPE_PREFIX = 'type.googleapis.com/envoy.extensions.filters';
const UNLIMITED = 1_000_000_000;
/** Numbers of Linux, see socket(7). */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;

/** Returns a configuration with one listener and one Envoy cluster for each backend. Envoy sets TCP_NODELAY by default. */
export function envoyConfiguration(ports: BackendPorts, backends: BackendPorts): object {
  return {
    static_resources: {
      listeners: BACKEND_NAMES.map((name) =>
        name === 'datagrams' ? udpListener(name, ports) : tcpListener(name, ports),
      ),
      clusters: BACKEND_NAMES.map((name) => clusterFor(name, backends[name])),
    },
  };
}

function tcpListener(name: BackendName, ports: BackendPorts): object {
  const proxy = {
    '@type': `${FILTER_TYPE_PREFIX}.network.tcp_proxy.v3.TcpProxy`,
    stat_prefix: name,
    cluster: name,
    idle_timeout: '600s',
  };
  return {
    name,
    address: addressFor(ports[name], 'TCP'),
    tcp_backlog_size: 4096,
    filter_chains: [{ filters: [{ name: 'envoy.filters.network.tcp_proxy', typed_config: proxy }] }],
  };
}

function udpListener(name: BackendName, ports: BackendPorts): object {
  const route = { '@type': `${FILTER_TYPE_PREFIX}.udp.udp_proxy.v3.Route`, cluster: name };
  const proxy = {
    '@type': `${FILTER_TYPE_PREFIX}.udp.udp_proxy.v3.UdpProxyConfig`,
    stat_prefix: name,
    matcher: { on_no_match: { action: { name: 'route', typed_config: route } } },
    idle_timeout: '60s',
  };
  return {
    name,
    address: addressFor(ports[name], 'UDP'),
    socket_options: [{ level: SOL_SOCKET, name: SO_RCVBUF, int_value: DATAGRAM_BUFFER_BYTES, state: 'STATE_PREBIND' }],
    listener_filters: [{ name: 'envoy.filters.udp_listener.udp_proxy', typed_config: proxy }],
  };
}

/** Returns an Envoy cluster with one endpoint. Raises the limits of the circuit breaker, because the default is 1,024 connections. */
function clusterFor(name: BackendName, port: number): object {
  const endpoint = { endpoint: { address: addressFor(port, name === 'datagrams' ? 'UDP' : 'TCP') } };
  const thresholds = { max_connections: UNLIMITED, max_pending_requests: UNLIMITED, max_requests: UNLIMITED };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    circuit_breakers: { thresholds: [thresholds] },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] },
  };
}

function addressFor(port: number, protocol: 'TCP' | 'UDP'): object {
  return { socket_address: { protocol, address: '127.0.0.1', port_value: port } };
}
