// Without policies to read, tenants stay as the table in force has them, with what they have and no more: read as "none", their
// limits would be gone, and what is granted once is never taken back.
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

export interface TenantsInTable {
  readonly tenants: readonly TenantEntry[];
  readonly services: readonly ServiceEntry[];
  readonly endpoints: readonly EndpointsEntry[];
  readonly pods: readonly PodObject[];
}

/**
 * One for each tenant that had a policy, of its name, and for each namespace in dispute one that keeps it there. The default policy is
 * configuration. `pods`: whose addresses need no policy.
 */
export function fallbackPolicies(table: TenantsInTable): TenantPolicyObject[] {
  const servicesOf = Map.groupBy(table.services, ({ tenant }) => tenant);
  const policies = table.tenants.flatMap(({ name: tenant, policy: name, namespaces, limits }) => {
    if (name === null || namespaces.length === 0) return [];
    const own = new Set(namespaces);
    // A Service in dispute is still of the tenant that it had, who is to get nothing by it.
    const services = (servicesOf.get(tenant) ?? []).filter(({ namespace }) => own.has(namespace));
    const grants = grantsOf(services, table);
    return policyOf(name, { ...inNamespaces(namespaces), tenantFrom: { kind: 'name', name: tenant }, limits, grants });
  });
  const disputed = table.services.filter(({ accepted }) => accepted.reason === 'TenantConflict');
  const byNamespace = [...Map.groupBy(disputed, ({ namespace }) => namespace)].sort(([a], [b]) => (a < b ? -1 : 1));
  const disputes = byNamespace.map(([namespace, services]) => {
    const tenantFrom = { kind: 'disputed', message: disputeMessage(namespace) } as const;
    const grants = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: foreignAddresses(services, table) };
    return policyOf('', { ...inNamespaces([namespace]), tenantFrom, grants });
  });
  return [...policies, ...disputes];
}

/** The dispute may be over, and who labels the namespace now waits in vain: only the operator can do something. */
function disputeMessage(namespace: string): string {
  return `it is not known whose tenant namespace "${namespace}" is: that was in dispute when Namespaces and TenantPolicies could be read last, and changes since then are not seen; ask the operator to let the controller read them (weir get problems says which right is missing)`;
}

/** Which the model gives each namespace, by its name. */
const NAME_LABEL = 'kubernetes.io/metadata.name';

function policyOf(name: string, spec: Partial<TenantPolicySpec>): TenantPolicyObject {
  const meta = { uid: `served/${name}`, name, labels: {}, annotations: {}, createdAt: null };
  return Object.freeze({ ...meta, spec: { ...UNRESTRICTED_POLICY, ...spec } });
}

function inNamespaces(namespaces: readonly string[]): Pick<TenantPolicySpec, 'namespaceSelector'> {
  const requirement = { key: NAME_LABEL, operator: 'In', values: namespaces } as const;
  return { namespaceSelector: { matchLabels: {}, matchExpressions: [requirement] } };
}

/** What the tenant's Services have of what a policy grants. */
function grantsOf(services: readonly ServiceEntry[], { endpoints, pods }: TenantsInTable): TenantGrants {
  const served = services.filter(({ settings }) => settings !== null);
  // The first pool is for those that ask for none.
  const inOrder = [...served].sort((a, b) => Number(asksForPool(a)) - Number(asksForPool(b)));
  const pools = [...new Set(inOrder.map(({ pool }) => pool ?? DEFAULT_POOL))];
  const wishes = served.filter(({ settings, nodes }) => settings?.nodes === null && nodes.length > 0).map(wantedNodes);
  return {
    pools: pools.length === 0 ? [DEFAULT_POOL] : pools,
    nodesPerService: wishes.length === 0 ? null : Math.max(...wishes),
    allowedPorts: allowedPortsOf(services),
    allowedHosts: [...new Set(served.flatMap(({ settings }) => settings?.hosts ?? []))].sort(),
    allowedEndpointCIDRs: foreignAddresses(served, { endpoints, pods }),
  };
}

/** How many nodes it has; more are wanted when it says so. */
function wantedNodes({ nodes, degraded }: ServiceEntry): number {
  return degraded.some(({ reason }) => reason === 'FewerNodes') ? nodes.length + 1 : nodes.length;
}

function asksForPool({ settings }: ServiceEntry): boolean {
  return settings?.pool !== null;
}

/** Also of those that are refused for another reason, which should go on being the reason. */
function allowedPortsOf(services: readonly ServiceEntry[]): PortRange[] {
  const ports = services.flatMap((service) => service.ports.filter(({ error }) => error?.reason !== 'PortNotAllowed'));
  return [...new Set(ports.map(({ port }) => port))].sort((a, b) => a - b).map((port) => ({ from: port, to: port }));
}

/** Endpoints that are no pods of their namespace: a policy allowed them. */
function foreignAddresses(
  services: readonly ServiceEntry[],
  { endpoints, pods }: Pick<TenantsInTable, 'endpoints' | 'pods'>,
): string[] {
  const namespaceOf = new Map(services.map(({ uid, namespace }) => [uid, namespace]));
  const ofPods = new Set(pods.flatMap(({ namespace, ips }) => ips.map((ip) => `${namespace}/${ip}`)));
  const addresses = endpoints.flatMap((entry) => {
    const namespace = namespaceOf.get(entry.service);
    return namespace === undefined
      ? []
      : entry.endpoints.filter(({ address }) => !ofPods.has(`${namespace}/${address}`)).map(({ address }) => address);
  });
  const networks = [...new Set(addresses)].map((address) => `${address}/${address.includes(':') ? 128 : 32}`);
  return networks.map((text) => parseCidr(text)?.text ?? text);
}
