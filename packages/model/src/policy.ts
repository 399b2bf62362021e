// The spec of a TenantPolicy (`weir.dev/v1alpha1`): which namespaces form a tenant, and the permissions and limits of the tenant.
import type { PortRange } from './port-range.ts';
import type { Rule } from './rules/rule.ts';

export interface TenantPolicySpec {
  /**
   * If several policies select a namespace, the policy with the highest priority applies; of policies with equal priority, the first by
   * name. Policies never merge.
   */
  readonly priority: number;
  readonly namespaceSelector: LabelSelector;
  readonly tenantFrom: TenantFrom;
  readonly grants: TenantGrants;
  readonly limits: TenantLimits;
  /** Absent if the policy has no rules. */
  readonly rules?: readonly Rule[];
}

/** Where a tenant's Services may be placed, and which ports, hosts and endpoints they may use. */
export interface TenantGrants {
  /** Node pools; never empty. The first pool is the default for Services that name no pool. */
  readonly pools: readonly string[];
  /** The number of nodes for each Service, if the pool has that many; null for the fleet's default. */
  readonly nodesPerService: number | null;
  /** The greatest number of nodes that a Service may request; null for the number of `nodesPerService`. */
  readonly maxNodesPerService: number | null;
  /** The ports that Services may use; null allows every port that is not reserved. */
  readonly allowedPorts: readonly PortRange[] | null;
  /** Hosts that may be claimed on shared ports, in the form of `parseHost`; a leading `*.` allows all subdomains. */
  readonly allowedHosts: readonly string[];
  /** CIDRs (canonical text) of endpoints that are allowed although they are not pods of the Service's namespace. */
  readonly allowedEndpointCIDRs: readonly string[];
}

export type TenantFrom =
  | { readonly kind: 'namespace' }
  | { readonly kind: 'label'; readonly label: string }
  | { readonly kind: 'name'; readonly name: string }
  /** The policy cannot be parsed, so its namespaces belong to no tenant. `message` is the reason. */
  | { readonly kind: 'disputed'; readonly message: string };

/**
 * Limits of a tenant, all integers. An absent limit means unlimited, 0 allows nothing. `trafficPerMonth` counts received and sent bytes.
 */
export interface TenantLimits {
  readonly services?: number;
  /** Listener ports, each counted once for each node on which it is allocated. */
  readonly ports?: number;
  /** Open TCP connections and UDP flows on all proxies together. */
  readonly connections?: number;
  readonly newConnectionsPerSecond?: number;
  /** HTTP requests per second on all proxies together. */
  readonly requestsPerSecond?: number;
  /** `in` is the direction from clients, `out` the direction to clients. */
  readonly inBitsPerSecond?: number;
  readonly outBitsPerSecond?: number;
  readonly trafficPerMonth?: number;
  /** Bytes that the Services of the tenant may take in the routing table. */
  readonly tableBytes?: number;
}

/** `limits.tableBytes` of a TenantPolicy that does not set this limit. */
export const DEFAULT_TABLE_BYTES: number = 4 * 1024 * 1024;

/** A metav1.LabelSelector: labels and expressions must all match, and an empty selector selects everything. */
export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly LabelRequirement[];
}

export interface LabelRequirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

/** The pool of nodes without the label `weir.dev/pool`. */
export const DEFAULT_POOL = 'default';

/** The greatest number of nodes that any Service may have. */
export const MAX_NODES_PER_SERVICE = 16;

export const UNRESTRICTED_GRANTS: TenantGrants = {
  pools: [DEFAULT_POOL],
  nodesPerService: null,
  maxNodesPerService: MAX_NODES_PER_SERVICE,
  allowedPorts: null,
  allowedHosts: [],
  allowedEndpointCIDRs: [],
};

/** Makes each namespace a tenant of the same name, without limits. */
export const UNRESTRICTED_POLICY: TenantPolicySpec = {
  priority: 0,
  namespaceSelector: { matchLabels: {}, matchExpressions: [] },
  tenantFrom: { kind: 'namespace' },
  grants: UNRESTRICTED_GRANTS,
  limits: {},
};

/** Applies to namespaces that no TenantPolicy selects, unless the operator names another default policy. */
export const DEFAULT_POLICY: TenantPolicySpec = { ...UNRESTRICTED_POLICY, limits: { tableBytes: DEFAULT_TABLE_BYTES } };
