// Derives TenantPolicies from the published table while policies cannot be read. With the derived policies, tenants keep their limits,
// ports, hosts and endpoints, and get no others. Without any policies, tenants would have no limits, and Services would keep the
// allocations that they get in that time.
import {
  DEFAULT_POOL,
  type EndpointsEntry,
  type PodObject,
  type PortRange,
  parseCidr,
  type Rule,
  type RuleRecord,
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
  /** The pods whose addresses need no permission by a policy. */
  readonly pods: readonly PodObject[];
}

/**
 * Returns a policy for each tenant that a policy selected, under the same name. Also returns a policy for each namespace whose tenant
 * was disputed; that policy refuses the namespace's Services. The default policy is not derived, because it is configuration.
 */
export function fallbackPolicies(table: TenantsInTable): TenantPolicyObject[] {
  const servicesOf = Map.groupBy(table.services, ({ tenant }) => tenant);
  const policies = table.tenants.flatMap(
    ({ name: tenant, policy: name, namespaces, limits, policyLimits = limits, rules }) => {
      if (name === null || namespaces.length === 0) return [];
      const own = new Set(namespaces);
      // The entry of a disputed Service still names its earlier tenant, but that tenant must not get grants from this Service.
      const services = (servicesOf.get(tenant) ?? []).filter(({ namespace }) => own.has(namespace));
      const grants = grantsOf(services, table);
      return policyOf(name, {
        ...inNamespaces(namespaces),
        tenantFrom: { kind: 'name', name: tenant },
        limits: policyLimits,
        grants,
        ...(rules && { rules: rules.map(ruleOf) }),
      });
    },
  );
  const disputed = table.services.filter(({ accepted }) => accepted.reason === 'TenantConflict');
  const byNamespace = [...Map.groupBy(disputed, ({ namespace }) => namespace)].sort(([a], [b]) => (a < b ? -1 : 1));
  const disputes = byNamespace.map(([namespace, services]) => {
    const tenantFrom = { kind: 'disputed', message: disputeMessage(namespace) } as const;
    const grants = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: addressesNotOfPods(services, table) };
    return policyOf('', { ...inNamespaces([namespace]), tenantFrom, grants });
  });
  return [...policies, ...disputes];
}

/** Returns a rule that matches the record, so that the action of the record continues. */
function ruleOf({ rule, metric, above, forMs, action, throttleTo }: RuleRecord): Rule {
  return { name: rule, metric, above, forMs, action, throttleTo: throttleTo ?? null, durationMs: null };
}

/**
 * Returns the message for a namespace whose tenant was disputed. The dispute may have been resolved since, but the controller cannot
 * read the objects that would show this.
 */
function disputeMessage(namespace: string): string {
  return `the tenant of namespace "${namespace}" is unknown: when the controller could last read Namespaces and TenantPolicies, two policies claimed the tenant, or the namespace lacked the tenant label; ask the operator to restore the permission to read them ("weir get problems" names the permission)`;
}

function policyOf(name: string, spec: Partial<TenantPolicySpec>): TenantPolicyObject {
  const meta = { uid: `served/${name}`, name, labels: {}, annotations: {}, createdAt: null };
  return Object.freeze({ ...meta, spec: { ...UNRESTRICTED_POLICY, ...spec } });
}

function inNamespaces(namespaces: readonly string[]): Pick<TenantPolicySpec, 'namespaceSelector'> {
  const requirement = { key: NAMESPACE_NAME_LABEL, operator: 'In', values: namespaces } as const;
  return { namespaceSelector: { matchLabels: {}, matchExpressions: [requirement] } };
}

/** Returns grants for exactly the pools, ports, hosts and endpoints that the tenant's Services use in the table. */
function grantsOf(services: readonly ServiceEntry[], { endpoints, pods }: TenantsInTable): TenantGrants {
  const served = services.filter(({ settings }) => settings !== null);
  // Pools of Services that ask for no pool come first, because the first pool is the default.
  const inOrder = [...served].sort((a, b) => Number(asksForPool(a)) - Number(asksForPool(b)));
  const pools = [...new Set(inOrder.map(({ pool }) => pool ?? DEFAULT_POOL))];
  const nodeCounts = served
    .filter(({ settings, nodes }) => settings?.nodes === null && nodes.length > 0)
    .map(wantedNodeCount);
  const requestedCounts = served
    .filter(({ settings }) => settings?.nodes !== null)
    .map(({ nodes }) => Math.max(1, nodes.length));
  return {
    pools: pools.length === 0 ? [DEFAULT_POOL] : pools,
    nodesPerService: nodeCounts.length === 0 ? null : Math.max(...nodeCounts),
    maxNodesPerService: requestedCounts.length === 0 ? null : Math.max(...requestedCounts, ...nodeCounts),
    allowedPorts: allowedPortsOf(services),
    allowedHosts: [...new Set(served.flatMap(({ settings }) => settings?.hosts ?? []))].sort(),
    allowedEndpointCIDRs: addressesNotOfPods(served, { endpoints, pods }),
  };
}

/** Returns the number of nodes of the Service. Adds one if the Service has fewer nodes than it requests. */
function wantedNodeCount({ nodes, degraded }: ServiceEntry): number {
  return degraded.some(({ reason }) => reason === 'FewerNodes') ? nodes.length + 1 : nodes.length;
}

function asksForPool({ settings }: ServiceEntry): boolean {
  return settings?.pool !== null;
}

/**
 * Returns the ports of the Services, except ports that the policy did not allow. A port that was refused for another reason is
 * included, so that it is still refused for that reason.
 */
function allowedPortsOf(services: readonly ServiceEntry[]): PortRange[] {
  const ports = services.flatMap((service) => service.ports.filter(({ error }) => error?.reason !== 'PortNotAllowed'));
  return [...new Set(ports.map(({ port }) => port))].sort((a, b) => a - b).map((port) => ({ from: port, to: port }));
}

/** Returns the addresses of endpoints that belong to no pod in the Service's namespace. A policy must have allowed these addresses. */
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
