import type { SourceSnapshot } from '@weir/controller';
import type { NodeObject, TenantPolicyObject } from '@weir/model';
import { UNRESTRICTED_POLICY } from '@weir/model';
import { inMemoryCluster } from '../control/in-memory-cluster.ts';

export type StartLayout = {
  readonly services: number;
  /** Number of Services that the node serves. */
  readonly servicesOnNode: number;
  readonly node: { readonly name: string; readonly address: string };
};

const OTHER_POOL = 'elsewhere';

/** Returns the cluster of the benchmark `control`, on four nodes. Two nodes serve the first tenants, two nodes the remaining tenants. */
export function startCluster({ services, servicesOnNode, node }: StartLayout): SourceSnapshot {
  const cluster = inMemoryCluster(services);
  const tenantsOnNode = Math.ceil((servicesOnNode * cluster.namespaces.length) / services);
  return {
    ...cluster,
    namespaces: cluster.namespaces.map((namespace, index) =>
      index < tenantsOnNode ? namespace : { ...namespace, labels: { pool: OTHER_POOL } },
    ),
    nodes: [
      nodeFor(node.name, { address: node.address }),
      nodeFor('other-1', { address: '192.168.0.1' }),
      nodeFor('other-2', { address: '192.168.0.2', pool: OTHER_POOL }),
      nodeFor('other-3', { address: '192.168.0.3', pool: OTHER_POOL }),
    ],
    policies: [policy()],
  };
}

function policy(): TenantPolicyObject {
  return {
    ...objectMeta(OTHER_POOL),
    spec: {
      ...UNRESTRICTED_POLICY,
      namespaceSelector: { matchLabels: { pool: OTHER_POOL }, matchExpressions: [] },
      grants: { ...UNRESTRICTED_POLICY.grants, pools: [OTHER_POOL] },
    },
  };
}

function nodeFor(name: string, { address, pool }: { readonly address: string; readonly pool?: string }): NodeObject {
  return {
    ...objectMeta(name),
    labels: { role: 'loadbalancer', ...(pool === undefined ? {} : { 'weir.dev/pool': pool }) },
    internalIPs: [address],
    externalIPs: [],
    unschedulable: false,
  };
}

function objectMeta(name: string) {
  return { uid: `uid-${name}`, name, labels: {}, annotations: {}, createdAt: null };
}
