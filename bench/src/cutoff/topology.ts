// Addresses and ports of the fleet. All addresses are on `lo` of a network namespace, because EndpointSlices must not contain loopback
// addresses.

export const API_SERVER_ADDRESS = '10.250.0.1';
export const ENDPOINT_NETWORK = '10.244.0.0/16';
/** The tenant whose traffic is cut off, and the tenant whose traffic must not change. Each has one namespace and one Service. */
export const TARGET_TENANT = 'target';
export const OTHER_TENANT = 'other';
export const TARGET_ENDPOINT = '10.244.0.1';
export const OTHER_ENDPOINT = '10.244.0.2';
export const OTHER_PORT = 7_005;

/** The kinds of the target's connections. An HTTP/2 stream and a UDP flow count as a connection. */
export const CONNECTION_KINDS = ['tcp', 'websocket', 'http2', 'udp'] as const;
export type ConnectionKind = (typeof CONNECTION_KINDS)[number];

export const TARGET_PORTS: Readonly<Record<ConnectionKind, number>> = {
  tcp: 7_001,
  websocket: 7_002,
  http2: 7_003,
  udp: 7_004,
};

/** The share of each kind in the target's connections. */
export const KIND_SHARES: Readonly<Record<ConnectionKind, number>> = { tcp: 0.4, websocket: 0.2, http2: 0.2, udp: 0.2 };

/** Time between two messages on each HTTP/2 stream and UDP flow of the target. */
export const MESSAGE_INTERVAL_MS = 500;
/** Time between two messages on each TCP connection and WebSocket. The reset shows when they end, so they need fewer messages. */
export const STREAM_MESSAGE_INTERVAL_MS = 2_000;
export const MESSAGE_BYTES = 16;

export type BenchNode = { readonly name: string; readonly address: string };

export function benchNodes(count: number): readonly BenchNode[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `bench-${index + 1}`,
    address: `10.250.0.${11 + index}`,
  }));
}

export function namespaceAddresses(nodes: readonly BenchNode[]): readonly string[] {
  return [API_SERVER_ADDRESS, TARGET_ENDPOINT, OTHER_ENDPOINT, ...nodes.map(({ address }) => address)];
}
