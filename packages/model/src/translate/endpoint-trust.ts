import type { ListDiff } from '../compare.ts';
import type { FleetSettings } from '../fleet-settings.ts';
import { canonicalAddress, isSpecialAddress } from '../match/address.ts';
import { compileNetworks, type NetworkSet } from '../match/networks.ts';
import { reservationFor } from '../reserved-ports.ts';
import type { NodeObject, PodObject, ServiceCidrObject, ServiceObject } from '../snapshot.ts';
import type { Endpoint, NodeEntry } from '../table/entry.ts';
import type { Tenancy } from './tenancy.ts';

// A tenant can write an EndpointSlice by hand with any address, and the proxy would connect to that address with the node's identity
// (CVE-2021-25740). An endpoint is therefore used only if its address belongs to a pod of the slice's namespace, or if the tenant's
// policy allows the address (allowedEndpointCIDRs). No policy allows addresses of pods in other namespaces (among them Weir's own pods),
// of nodes, of cluster IPs, or special addresses. A pod on the host network has the address of its node, so the ports of the node that
// Kubernetes, Weir or the operator need are refused.

/**
 * The reason to refuse an address that belongs to no pod of the namespace. A tenant's policy can remove only this reason, by allowing the
 * address in allowedEndpointCIDRs.
 */
export const NOT_A_POD_ADDRESS = 'does not belong to a pod of this namespace';
/** Why a port of a pod on the host network is refused: the end of a sentence about the address and port. */
export const RESERVED_ON_NODES = 'is a port that is reserved on the nodes';
/** Why the address of an endpoint in a manifest file is refused. A proxy that connected to 0.0.0.0 would reach its own node. */
const UNSPECIFIED = 'is the unspecified address';
/** Returns why a Service of this namespace may not have the endpoint; undefined if it may. */
export type EndpointTrustCheck = (
  namespace: string,
  endpoint: Pick<Endpoint, 'address' | 'port'>,
) => string | undefined;

interface PodAddress {
  /** Whether a pod with this address is on the host network, and therefore has the address of its node. */
  readonly hostNetwork: boolean;
}

export class EndpointTrustIndex {
  readonly #settings: FleetSettings;
  readonly #isEnforced: boolean;
  readonly #clusterIps: ClusterIpIndex;
  #nodeAddresses: ReadonlySet<string | undefined> = new Set();
  /** The number of pods of the cluster with each address. */
  readonly #podCounts = new AddressCounts();
  readonly #podsByNamespace = new Map<string, Set<PodObject>>();
  /** The addresses of the pods in each namespace, computed on first use. */
  readonly #podAddresses = new Map<string, ReadonlyMap<string, PodAddress>>();
  /** The compiled networks of each policy, by its list allowedEndpointCIDRs. */
  readonly #networks = new WeakMap<readonly string[], NetworkSet>();

  constructor(settings: FleetSettings) {
    const { trust } = settings;
    this.#settings = settings;
    this.#isEnforced = trust.kind === 'pods';
    this.#clusterIps = new ClusterIpIndex(trust.kind === 'pods' ? trust.serviceCidrs : []);
  }

  /**
   * Sets all nodes of the cluster (`nodes`), and the nodes that run proxies (`fleet`) with the addresses that Weir binds. An endpoint may
   * have the address of a node only if a pod on the host network has this address.
   */
  setNodes(nodes: readonly NodeObject[], fleet: readonly NodeEntry[]): void {
    const reported = nodes.flatMap((node) => [...node.internalIPs, ...node.externalIPs]);
    this.#nodeAddresses = new Set([...reported.map(canonicalAddress), ...fleet.flatMap((node) => node.bindAddresses)]);
  }

  /** Sets the ServiceCIDR objects. After a change the caller must check the endpoints of all Services again. */
  setServiceRanges(objects: readonly ServiceCidrObject[]): void {
    this.#clusterIps.setRanges(objects);
  }

  /**
   * Applies changes of Services. Returns the addresses that became or stopped being a cluster IP. The caller must check endpoints with
   * these addresses again.
   */
  setServices(changes: ListDiff<ServiceObject>): readonly string[] {
    return this.#isEnforced ? this.#clusterIps.setServices(changes) : [];
  }

  /**
   * Applies changes of pods. Returns the namespaces whose pods changed, and the addresses that became or ceased to be the address of a pod.
   * The caller must check the endpoints of these namespaces, and endpoints with these addresses, again.
   */
  setPods({ removed, added }: ListDiff<PodObject>): {
    readonly namespaces: ReadonlySet<string>;
    readonly addresses: readonly string[];
  } {
    const namespaces = new Set([...removed, ...added].map(({ namespace }) => namespace));
    for (const pod of removed) this.#podsByNamespace.get(pod.namespace)?.delete(pod);
    for (const pod of added) {
      const pods = this.#podsByNamespace.get(pod.namespace) ?? new Set();
      this.#podsByNamespace.set(pod.namespace, pods.add(pod));
    }
    for (const namespace of namespaces) {
      this.#podAddresses.delete(namespace);
      if (this.#podsByNamespace.get(namespace)?.size === 0) this.#podsByNamespace.delete(namespace);
    }
    const addresses = this.#isEnforced
      ? this.#podCounts.update({ removed: removed.flatMap(({ ips }) => ips), added: added.flatMap(({ ips }) => ips) })
      : [];
    return { namespaces, addresses };
  }

  checkFor(tenancy: Tenancy): EndpointTrustCheck {
    return (namespace, { address, port }) => {
      const canonical = canonicalAddress(address);
      // The proxy does not resolve names. So a name, as in a slice with addressType FQDN, is refused even if all addresses are trusted.
      if (canonical === undefined) return 'is not an IP address';
      if (!this.#isEnforced) return canonical === '0.0.0.0' || canonical === '::' ? UNSPECIFIED : undefined;
      if (isSpecialAddress(canonical)) return 'is a loopback, link-local or other special address';
      if (this.#clusterIps.isInRange(canonical)) return 'is in the range of the cluster IPs of Services';
      const pod = this.#podAddressesOf(namespace).get(canonical);
      if (this.#nodeAddresses.has(canonical)) {
        if (pod?.hostNetwork !== true) return 'is the address of a node';
        return reservationFor(port, this.#settings) === undefined ? undefined : RESERVED_ON_NODES;
      }
      if (pod !== undefined) return undefined;
      if (!this.isAllowed(namespace, canonical, tenancy)) return NOT_A_POD_ADDRESS;
      if (this.#podCounts.has(canonical)) return 'belongs to a pod of another namespace';
      return this.#clusterIps.isClusterIp(canonical) ? 'is the cluster IP of a Service' : undefined;
    };
  }

  /** Reports whether the policy of a namespace allows an address that belongs to no pod. */
  isAllowed(namespace: string, address: string, tenancy: Tenancy): boolean {
    return this.#allowedNetworks(namespace, tenancy).contains(address);
  }

  #podAddressesOf(namespace: string): ReadonlyMap<string, PodAddress> {
    const known = this.#podAddresses.get(namespace);
    if (known !== undefined) return known;
    const addresses = new Map<string, PodAddress>();
    for (const pod of this.#podsByNamespace.get(namespace) ?? []) {
      for (const ip of pod.ips) {
        const canonical = canonicalAddress(ip);
        if (canonical === undefined) continue;
        addresses.set(canonical, { hostNetwork: pod.hostNetwork || addresses.get(canonical)?.hostNetwork === true });
      }
    }
    this.#podAddresses.set(namespace, addresses);
    return addresses;
  }

  #allowedNetworks(namespace: string, tenancy: Tenancy): NetworkSet {
    const membership = tenancy.membershipOf(namespace);
    const { allowedEndpointCIDRs: texts } = membership.kind === 'tenant' ? membership.tenant.grants : membership;
    const networks = this.#networks.get(texts) ?? compileNetworks(texts);
    this.#networks.set(texts, networks);
    return networks;
  }
}

/**
 * Holds the ranges of cluster IPs, and the cluster IPs of all Services. Through an endpoint with the cluster IP of another tenant's
 * Service, clients could bypass the limits and NetworkPolicies of that Service.
 */
class ClusterIpIndex {
  readonly #configuredRanges: readonly string[];
  #ranges: NetworkSet;
  readonly #counts = new AddressCounts();

  /** `configuredRanges` are the CIDRs of the fleet settings. They apply in addition to the CIDRs of the ServiceCIDR objects. */
  constructor(configuredRanges: readonly string[]) {
    this.#configuredRanges = configuredRanges;
    this.#ranges = compileNetworks(configuredRanges);
  }

  setRanges(objects: readonly ServiceCidrObject[]): void {
    this.#ranges = compileNetworks([...this.#configuredRanges, ...objects.flatMap(({ cidrs }) => cidrs)]);
  }

  /**
   * Applies changes of Services. Returns the addresses that became or stopped being a cluster IP. Leaves out addresses within the known
   * ranges, because these are always refused.
   */
  setServices({ removed, added }: ListDiff<ServiceObject>): readonly string[] {
    const clusterIpsOf = (services: readonly ServiceObject[]): string[] =>
      services.flatMap(({ clusterIPs = [] }) => clusterIPs);
    const changed = this.#counts.update({ removed: clusterIpsOf(removed), added: clusterIpsOf(added) });
    return changed.filter((address) => !this.#ranges.contains(address));
  }

  isInRange(address: string): boolean {
    return this.#ranges.contains(address);
  }

  isClusterIp(address: string): boolean {
    return this.#counts.has(address);
  }
}

/**
 * Counts the objects with each address. A new object may appear with an address before the former owner of the address has gone.
 */
class AddressCounts {
  readonly #counts = new Map<string, number>();

  has(address: string): boolean {
    return this.#counts.has(address);
  }

  /** Counts the addresses of removed and added objects. Returns the addresses that appeared or vanished, in canonical form. */
  update({ removed, added }: ListDiff<string>): readonly string[] {
    const changes = new Map<string, number>();
    const count = (texts: readonly string[], change: 1 | -1): void => {
      for (const text of texts) {
        const address = canonicalAddress(text);
        if (address !== undefined) changes.set(address, (changes.get(address) ?? 0) + change);
      }
    };
    count(added, 1);
    count(removed, -1);
    const changed: string[] = [];
    for (const [address, change] of changes) {
      const before = this.#counts.get(address) ?? 0;
      const now = before + change;
      if (now === 0) this.#counts.delete(address);
      else this.#counts.set(address, now);
      if ((before === 0) !== (now === 0)) changed.push(address);
    }
    return changed;
  }
}
