// TenantPolicy, `weir.dev/v1alpha1`, as far as it is honoured: who is a tenant, and what it may have.
import type { PortRange } from './port-range.ts';

export interface TenantPolicySpec {
  /** Higher wins, then the name; policies never merge. */
  readonly priority: number;
  readonly namespaceSelector: LabelSelector;
  readonly tenantFrom: TenantFrom;
  readonly grants: TenantGrants;
  readonly limits: TenantLimits;
}

/** Where a tenant may be served, and what it may reach. */
export interface TenantGrants {
  /** Node pools, never none; the first is for Services that ask for no other. */
  readonly pools: readonly string[];
  /** How many nodes each Service gets as long as there are so many; null: as the fleet has it. */
  readonly nodesPerService: number | null;
  /** Null: every port that is not reserved. */
  readonly allowedPorts: readonly PortRange[] | null;
  /** Hosts that may be claimed on ports that the fleet shares: as `parseHost` writes them, `*.` first for all below. */
  readonly allowedHosts: readonly string[];
  /** CIDRs in canonical text in which endpoints may lie that are no pods of their namespace. */
  readonly allowedEndpointCIDRs: readonly string[];
}

export type TenantFrom =
  | { readonly kind: 'namespace' }
  | { readonly kind: 'label'; readonly label: string }
  | { readonly kind: 'name'; readonly name: string }
  /** In place of a policy that cannot be read: whose tenant it is was in dispute, as the message says. */
  | { readonly kind: 'disputed'; readonly message: string };

/** Absent = unlimited, 0 = none. All are integers; `trafficPerMonth` is bytes, in + out. */
export interface TenantLimits {
  readonly services?: number;
  readonly ports?: number;
  /** Open at a time; a UDP flow is one, too. On each proxy. */
  readonly connections?: number;
  readonly newConnectionsPerSecond?: number;
  /** What clients send, and what they get. */
  readonly inBitsPerSecond?: number;
  readonly outBitsPerSecond?: number;
  readonly trafficPerMonth?: number;
}

/** metav1.LabelSelector; both parts must hold, an empty selector selects everything. */
export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly LabelRequirement[];
}

export interface LabelRequirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

/** Of nodes without the label `weir.dev/pool`. */
export const DEFAULT_POOL = 'default';

export const UNRESTRICTED_GRANTS: TenantGrants = {
  pools: [DEFAULT_POOL],
  nodesPerService: null,
  allowedPorts: null,
  allowedHosts: [],
  allowedEndpointCIDRs: [],
};

/** Each namespace is a tenant of its own name, without limits. */
export const UNRESTRICTED_POLICY: TenantPolicySpec = {
  priority: 0,
  namespaceSelector: { matchLabels: {}, matchExpressions: [] },
  tenantFrom: { kind: 'namespace' },
  grants: UNRESTRICTED_GRANTS,
  limits: {},
};
