import { DEFAULT_POLICY, type TenantPolicySpec } from './policy.ts';
import type { PortRange } from './port-range.ts';

// The settings of a fleet. The operator of the fleet configures them in the chart.
export interface FleetSettings {
  readonly loadBalancerClass: string;
  /** Whether to serve Services that name no load balancer class. */
  readonly classless: boolean;
  /** The policy of namespaces that no TenantPolicy selects. */
  readonly defaultPolicy: TenantPolicySpec;
  /** TCP and UDP ports that no Service may use. The ports of Kubernetes and Weir are always reserved in addition. */
  readonly reservedPorts: readonly PortRange[];
  /** TCP ports that many Services share, distinguished by host name. */
  readonly sharedPorts: readonly number[];
  /**
   * The number of nodes of a Service if neither the Service nor its TenantPolicy sets a number. If the TenantPolicy sets no number, no
   * Service may request more nodes.
   */
  readonly nodesPerService: number;
  /** The most ports of a Service. A Service that was accepted with more ports keeps them. */
  readonly maxPortsPerService: number;
  readonly trust: EndpointTrust;
  /** Absent if the fleet reads no Secrets. */
  readonly secretAccess?: SecretAccess;
}

/** Which Secrets the fleet may read: `tls.secretAccess` in the chart. */
export type SecretAccess =
  | { readonly kind: 'none' }
  | { readonly kind: 'namespaces'; readonly namespaces: readonly string[] }
  | { readonly kind: 'cluster' };

/**
 * Which endpoint addresses are accepted. `files`: all addresses in the manifest files. `pods`: only addresses of pods in the Service's
 * namespace, and addresses that the tenant policy allows (`allowedEndpointCIDRs`).
 */
export type EndpointTrust =
  | { readonly kind: 'files' }
  | { readonly kind: 'pods'; readonly serviceCidrs: readonly string[] };

export const DEFAULT_FLEET_SETTINGS: FleetSettings = {
  loadBalancerClass: 'weir.dev/weir',
  classless: false,
  defaultPolicy: DEFAULT_POLICY,
  reservedPorts: [],
  sharedPorts: [],
  nodesPerService: 2,
  maxPortsPerService: 100,
  trust: { kind: 'files' },
};
