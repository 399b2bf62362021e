import { OPEN_POLICY } from './policy.ts';
import type { PortRange } from './port-range.ts';
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

export const DEFAULT_SETTINGS: FleetSettings = {
  loadBalancerClass: 'weir.dev/weir',
  classless: false,
  defaultPolicy: OPEN_POLICY,
  reservedPorts: RESERVED_PORTS,
  nodesPerService: 2,
  trust: { kind: 'files' },
};
