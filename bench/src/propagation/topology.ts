// Who is where. With an API server all of it is in a network namespace, because EndpointSlices may not hold loopback addresses.
export type SocketAddress = { readonly host: string; readonly port: number };
/** The two of which one is the endpoint of a Service. */
export type EndpointName = 'A' | 'B';
export type NodeAddress = { readonly name: string; readonly address: string };
export const NODE_NAMES = ['bench-1', 'bench-2', 'bench-3'] as const;
/** Of the nth Service; none of them is reserved. */
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

/** Of this run alone: others may measure on the same machine. */
export function loopbackNodes(): readonly NodeAddress[] {
  const net = 2 + (process.pid % 250);
  return NODE_NAMES.map((name, index) => ({ name, address: `127.91.${net}.${11 + index}` }));
}

/** What changes the world. Of every Service the endpoint is A at first. */
export type Environment = AsyncDisposable & {
  readonly nodes: readonly NodeAddress[];
  readonly services: number;
  /** Makes this backend the one endpoint of the Service; when, by the machine's monotonic clock, the write began and was made. */
  switchEndpoint(service: number, to: EndpointName): Promise<{ readonly beganAt: number; readonly writtenAt: number }>;
};

const MAX_CHANGED_SERVICES = 10;

/** Those whose endpoint is moved, one after the other: ten, spread over all. */
export function changedServices(services: number): readonly number[] {
  const count = Math.min(MAX_CHANGED_SERVICES, services);
  return Array.from({ length: count }, (_, nth) => Math.floor((nth * services) / count));
}
