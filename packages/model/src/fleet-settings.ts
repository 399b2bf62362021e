import { OPEN_POLICY } from './policy.ts';
import { isInRanges, type PortRange } from './port-range.ts';
import type { FleetSettings } from './snapshot.ts';

/** SSH, etcd, the API server, the kubelet and its neighbours, node ports, and Weir's own console and admin ports. */
export const RESERVED_PORTS: readonly PortRange[] = [
  { from: 22, to: 22 },
  { from: 2379, to: 2380 },
  { from: 6443, to: 6443 },
  { from: 8686, to: 8687 },
  { from: 10_250, to: 10_259 },
  { from: 30_000, to: 32_767 },
];

/** What `sharedPorts` may hold, for whoever wrote something else. */
export const SHARED_PORT_ALLOWED = 'a TCP port from 1 to 65535 that the nodes do not need themselves, such as 443';

/** One of the ports that Services share by their host names; undefined: the text is none, or a reserved one. */
export function parseSharedPort(text: string): number | undefined {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 && !isInRanges(port, RESERVED_PORTS) ? port : undefined;
}

export const DEFAULT_SETTINGS: FleetSettings = {
  loadBalancerClass: 'weir.dev/weir',
  classless: false,
  defaultPolicy: OPEN_POLICY,
  reservedPorts: RESERVED_PORTS,
  sharedPorts: [],
  nodesPerService: 2,
  trust: { kind: 'files' },
};
