import type { SourceSnapshot } from '@weir/controller';
import type { NodeObject, TenantPolicyObject } from '@weir/model';
import { OPEN_POLICY } from '@weir/model';
import { clusterOf } from '../control/cluster.ts';

export type StartLayout = {
  readonly services: number;
  /** How many of them the node serves. */
  readonly here: number;
  readonly node: { readonly name: string; readonly address: string };
};

const elsewhere = 'elsewhere';

/** The cluster of `control`, on four nodes: the first two serve the tenants that are here, the others those that are not. */
export function startCluster({ services, here, node }: StartLayout): SourceSnapshot {
  const cluster = clusterOf(services);
  const tenantsHere = Math.ceil((here * cluster.namespaces.length) / services);
  return {
    ...cluster,
    namespaces: cluster.namespaces.map((each, index) =>
      index < tenantsHere ? each : { ...each, labels: { pool: elsewhere } },
    ),
    nodes: [
      nodeFor(node.name, { address: node.address }),
      nodeFor('other-1', { address: '192.168.0.1' }),
      nodeFor('other-2', { address: '192.168.0.2', pool: elsewhere }),
      nodeFor('other-3', { address: '192.168.0.3', pool: elsewhere }),
    ],
    policies: [policy()],
  };
}

function policy(): TenantPolicyObject {
  return {
    ...meta(elsewhere),
    spec: {
      ...OPEN_POLICY,
      namespaceSelector: { matchLabels: { pool: elsewhere }, matchExpressions: [] },
      grants: { ...OPEN_POLICY.grants, pools: [elsewhere] },
    },
  };
}

function nodeFor(name: string, { address, pool }: { readonly address: string; readonly pool?: string }): NodeObject {
  return {
    ...meta(name),
    labels: { role: 'loadbalancer', ...(pool === undefined ? {} : { 'weir.dev/pool': pool }) },
    internalIPs: [address],
    externalIPs: [],
    unschedulable: false,
  };
}

function meta(name: string) {
  return { uid: `uid-${name}`, name, labels: {}, annotations: {}, createdAt: null };
}
