// Addresses of nodes and endpoints. A run with an API server uses addresses in a network namespace, because EndpointSlices must not
// contain loopback addresses.
export type SocketAddress = { readonly host: string; readonly port: number };
/** Name of one of the two backends. Each Service has one backend as its endpoint. */
export type EndpointName = 'A' | 'B';
export type NodeAddress = { readonly name: string; readonly address: string };
export const NODE_NAMES = ['bench-1', 'bench-2', 'bench-3'] as const;
/** Returns the port of a Service by its index. No port is reserved. */
export const servicePort = (service: number): number => 12_000 + service;
export const API_SERVER_ADDRESS = '10.250.0.1';
export const POD_NETWORK = '10.244.0.0/16';
export const NAMESPACE_ENDPOINTS: Readonly<Record<EndpointName, string>> = { A: '10.244.0.1', B: '10.244.0.2' };

export const NAMESPACE_NODES: readonly NodeAddress[] = NODE_NAMES.map((name, index) => ({
  name,
  address: `10.250.0.${11 + index}`,
}));

export const NAMESPACE_ADDRESSES: readonly string[] = [
  API_SERVER_ADDRESS,
  ...NAMESPACE_NODES.map(({ address }) => address),
  ...Object.values(NAMESPACE_ENDPOINTS),
];

/** Returns nodes on loopback addresses that depend on the process id, so that several benchmarks can run on one machine. */
export function loopbackNodes(): readonly NodeAddress[] {
  const net = 2 + (process.pid % 250);
  return NODE_NAMES.map((name, index) => ({ name, address: `127.91.${net}.${11 + index}` }));
}

/** The cluster that the benchmark changes. At the start, the endpoint of every Service is A. */
export type Environment = AsyncDisposable & {
  readonly nodes: readonly NodeAddress[];
  readonly services: number;
  /** Makes `to` the endpoint of the Service. Returns the times on the machine's monotonic clock at which the write started and ended. */
  switchEndpoint(
    service: number,
    to: EndpointName,
  ): Promise<{ readonly startedAt: number; readonly writtenAt: number }>;
};

const MAX_CHANGED_SERVICES = 10;

/** Returns the indexes of the Services whose endpoints change: at most ten, evenly spread over all Services. */
export function changedServices(services: number): readonly number[] {
  const count = Math.min(MAX_CHANGED_SERVICES, services);
  return Array.from({ length: count }, (_, nth) => Math.floor((nth * services) / count));
}
