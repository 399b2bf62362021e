// Derives TenantPolicies from the published table while policies cannot be read. Tenants keep their limits and what they use, and
// get nothing more. Without policies their limits would be gone, and Services would keep what they are granted meanwhile.
import {
  DEFAULT_POOL,
  type EndpointsEntry,
  type PodObject,
  type PortRange,
  parseCidr,
  type ServiceEntry,
  type TenantEntry,
  type TenantGrants,
  type TenantPolicyObject,
  type TenantPolicySpec,
  UNRESTRICTED_GRANTS,
  UNRESTRICTED_POLICY,
} from '@weir/model';
import { NAMESPACE_NAME_LABEL } from '../parse/cluster-objects.ts';

export interface TenantsInTable {
  readonly tenants: readonly TenantEntry[];
  readonly services: readonly ServiceEntry[];
  readonly endpoints: readonly EndpointsEntry[];
  /** Addresses of these pods need no policy. */
  readonly pods: readonly PodObject[];
}

/**
 * One policy for each tenant that had a policy, under the same name, and for each disputed namespace one policy that keeps the
 * dispute. The default policy is configuration and not derived.
 */
export function fallbackPolicies(table: TenantsInTable): TenantPolicyObject[] {
  const servicesOf = Map.groupBy(table.services, ({ tenant }) => tenant);
  const policies = table.tenants.flatMap(({ name: tenant, policy: name, namespaces, limits }) => {
    if (name === null || namespaces.length === 0) return [];
    const own = new Set(namespaces);
    // The entry of a disputed Service still names its earlier tenant, which must not get grants from it.
    const services = (servicesOf.get(tenant) ?? []).filter(({ namespace }) => own.has(namespace));
    const grants = grantsOf(services, table);
    return policyOf(name, { ...inNamespaces(namespaces), tenantFrom: { kind: 'name', name: tenant }, limits, grants });
  });
  const disputed = table.services.filter(({ accepted }) => accepted.reason === 'TenantConflict');
  const byNamespace = [...Map.groupBy(disputed, ({ namespace }) => namespace)].sort(([a], [b]) => (a < b ? -1 : 1));
  const disputes = byNamespace.map(([namespace, services]) => {
    const tenantFrom = { kind: 'disputed', message: disputeMessage(namespace) } as const;
    const grants = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: addressesNotOfPods(services, table) };
    return policyOf('', { ...inNamespaces([namespace]), tenantFrom, grants });
  });
  return [...policies, ...disputes];
}

/** The dispute may be over, but no change of labels is seen: only the operator can help. */
function disputeMessage(namespace: string): string {
  return `the tenant of namespace "${namespace}" is unknown: it was in dispute when the controller last read Namespaces and TenantPolicies, and later changes are not seen; ask the operator to let the controller read them (weir get problems says which right is missing)`;
}

function policyOf(name: string, spec: Partial<TenantPolicySpec>): TenantPolicyObject {
  const meta = { uid: `served/${name}`, name, labels: {}, annotations: {}, createdAt: null };
  return Object.freeze({ ...meta, spec: { ...UNRESTRICTED_POLICY, ...spec } });
}

function inNamespaces(namespaces: readonly string[]): Pick<TenantPolicySpec, 'namespaceSelector'> {
  const requirement = { key: NAMESPACE_NAME_LABEL, operator: 'In', values: namespaces } as const;
  return { namespaceSelector: { matchLabels: {}, matchExpressions: [requirement] } };
}

/** Grants what the tenant's Services use in the table. */
function grantsOf(services: readonly ServiceEntry[], { endpoints, pods }: TenantsInTable): TenantGrants {
  const served = services.filter(({ settings }) => settings !== null);
  // The first pool is the default for Services that ask for no pool.
  const inOrder = [...served].sort((a, b) => Number(asksForPool(a)) - Number(asksForPool(b)));
  const pools = [...new Set(inOrder.map(({ pool }) => pool ?? DEFAULT_POOL))];
  const nodeCounts = served
    .filter(({ settings, nodes }) => settings?.nodes === null && nodes.length > 0)
    .map(wantedNodeCount);
  return {
    pools: pools.length === 0 ? [DEFAULT_POOL] : pools,
    nodesPerService: nodeCounts.length === 0 ? null : Math.max(...nodeCounts),
    allowedPorts: allowedPortsOf(services),
    allowedHosts: [...new Set(served.flatMap(({ settings }) => settings?.hosts ?? []))].sort(),
    allowedEndpointCIDRs: addressesNotOfPods(served, { endpoints, pods }),
  };
}

/** The number of nodes of the Service, and one more if the Service has fewer nodes than it should. */
function wantedNodeCount({ nodes, degraded }: ServiceEntry): number {
  return degraded.some(({ reason }) => reason === 'FewerNodes') ? nodes.length + 1 : nodes.length;
}

function asksForPool({ settings }: ServiceEntry): boolean {
  return settings?.pool !== null;
}

/** Includes ports that are refused for another reason, so that the reason stays. */
function allowedPortsOf(services: readonly ServiceEntry[]): PortRange[] {
  const ports = services.flatMap((service) => service.ports.filter(({ error }) => error?.reason !== 'PortNotAllowed'));
  return [...new Set(ports.map(({ port }) => port))].sort((a, b) => a - b).map((port) => ({ from: port, to: port }));
}

/** Networks of single endpoints that are not pods of their namespace: a policy must have allowed them. */
function addressesNotOfPods(
  services: readonly ServiceEntry[],
  { endpoints, pods }: Pick<TenantsInTable, 'endpoints' | 'pods'>,
): string[] {
  const namespaceOf = new Map(services.map(({ uid, namespace }) => [uid, namespace]));
  const podAddresses = new Set(pods.flatMap(({ namespace, ips }) => ips.map((ip) => `${namespace}/${ip}`)));
  const addresses = endpoints.flatMap((entry) => {
    const namespace = namespaceOf.get(entry.service);
    return namespace === undefined
      ? []
      : entry.endpoints
          .filter(({ address }) => !podAddresses.has(`${namespace}/${address}`))
          .map(({ address }) => address);
  });
  const networks = [...new Set(addresses)].map((address) => `${address}/${address.includes(':') ? 128 : 32}`);
  return networks.map((text) => parseCidr(text)?.text ?? text);
}
