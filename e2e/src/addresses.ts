/** Addresses inside the namespace of an end-to-end test: the API server, the nodes, pods and clients, all on `lo`. */
export const API_SERVER = '10.250.0.1';
export const NODES = ['node-1', 'node-2', 'node-3'] as const;
export type NodeName = (typeof NODES)[number];

export const nodeAddress = (node: NodeName): string => `10.250.0.1${node.at(-1)}`;
export const podAddress = (number: number): string => `10.244.0.${number}`;

const PODS = 20;

export const ALL_ADDRESSES: readonly string[] = [
  API_SERVER,
  ...NODES.map(nodeAddress),
  ...Array.from({ length: PODS }, (_, i) => podAddress(i + 1)),
];
