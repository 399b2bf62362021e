// Who is where. With an API server all of it is in a network namespace, because EndpointSlices may not hold loopback addresses.
export type Place = { readonly host: string; readonly port: number };
/** The two of which one is the endpoint of a Service. */
export type BackendName = 'A' | 'B';
export type Node = { readonly name: string; readonly address: string };

export const nodeNames = ['bench-1', 'bench-2', 'bench-3'] as const;
/** Of the nth Service; none of them is reserved. */
export const portOf = (service: number): number => 12_000 + service;

export const apiServerAddress = '10.250.0.1';
export const podNetwork = '10.244.0.0/16';
export const namespaceBackends: Readonly<Record<BackendName, string>> = { A: '10.244.0.1', B: '10.244.0.2' };

export const namespaceNodes: readonly Node[] = nodeNames.map((name, index) => ({
  name,
  address: `10.250.0.${11 + index}`,
}));
export const namespaceAddresses: readonly string[] = [
  apiServerAddress,
  ...namespaceNodes.map(({ address }) => address),
  ...Object.values(namespaceBackends),
];

/** Of this run alone: others may measure on the same machine. */
export function loopbackNodes(): readonly Node[] {
  const net = 2 + (process.pid % 250);
  return nodeNames.map((name, index) => ({ name, address: `127.91.${net}.${11 + index}` }));
}
