import { type BackendName, backendNames, type Ports } from './subject.ts';

const extensions = 'type.googleapis.com/envoy.extensions.filters';
const unlimited = 1_000_000_000;

/** One listener and one cluster of one endpoint for each backend, without an admin port. It sets TCP_NODELAY by itself. */
export function envoyConfiguration(ports: Ports, backends: Ports): object {
  return {
    static_resources: {
      listeners: backendNames.map((name) =>
        name === 'datagrams' ? udpListener(name, ports) : tcpListener(name, ports),
      ),
      clusters: backendNames.map((name) => clusterFor(name, backends[name])),
    },
  };
}

function tcpListener(name: BackendName, ports: Ports): object {
  const proxy = {
    '@type': `${extensions}.network.tcp_proxy.v3.TcpProxy`,
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

function udpListener(name: BackendName, ports: Ports): object {
  const route = { '@type': `${extensions}.udp.udp_proxy.v3.Route`, cluster: name };
  const proxy = {
    '@type': `${extensions}.udp.udp_proxy.v3.UdpProxyConfig`,
    stat_prefix: name,
    matcher: { on_no_match: { action: { name: 'route', typed_config: route } } },
    idle_timeout: '60s',
  };
  return {
    name,
    address: addressFor(ports[name], 'UDP'),
    listener_filters: [{ name: 'envoy.filters.udp_listener.udp_proxy', typed_config: proxy }],
  };
}

/** Its circuit breaker would refuse beyond 1,024 connections. */
function clusterFor(name: BackendName, port: number): object {
  const endpoint = { endpoint: { address: addressFor(port, name === 'datagrams' ? 'UDP' : 'TCP') } };
  const most = { max_connections: unlimited, max_pending_requests: unlimited, max_requests: unlimited };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    circuit_breakers: { thresholds: [most] },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] },
  };
}

function addressFor(port: number, protocol: 'TCP' | 'UDP'): object {
  return { socket_address: { protocol, address: '127.0.0.1', port_value: port } };
}
