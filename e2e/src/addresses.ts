// Addresses of the API server, nodes and pods in the network namespace of an end-to-end test. All addresses are on `lo`.

export const API_SERVER_ADDRESS = '10.250.0.1';
export const NODES = ['node-1', 'node-2', 'node-3'] as const;
export type NodeName = (typeof NODES)[number];

export const nodeAddress = (node: NodeName): string => `10.250.0.1${node.at(-1)}`;
export const nodeAddress6 = (node: NodeName): string => `fd00:250::1${node.at(-1)}`;
export const podAddress = (number: number): string => `10.244.0.${number}`;
export const podAddress6 = (number: number): string => `fd00:244::${number}`;
export const SERVICE_CIDRS = ['10.96.0.0/16', 'fd00:96::/112'] as const;
/** An additional address of a node, to which its proxy can bind listeners. */
export const EXTRA_NODE_ADDRESS = '10.250.0.21';
/** An address outside of the pod network, for endpoints without a pod. */
export const FOREIGN_ADDRESS = '172.20.0.1';

const POD_COUNT = 20;

export const ALL_ADDRESSES: readonly string[] = [
  API_SERVER_ADDRESS,
  ...NODES.map(nodeAddress),
  ...Array.from({ length: POD_COUNT }, (_, i) => podAddress(i + 1)),
];

/** The addresses of a fleet with IPv4 and IPv6. */
export const DUAL_STACK_ADDRESSES: readonly string[] = [
  ...ALL_ADDRESSES,
  FOREIGN_ADDRESS,
  ...NODES.map(nodeAddress6),
  podAddress6(1),
];
