import type { EndpointTrust } from '../fleet-settings.ts';
import type { ListDiff } from '../list-diff.ts';
import { canonicalAddress, isSpecialAddress } from '../match/cidr.ts';
import { compileNetworks, type NetworkSet } from '../match/networks.ts';
import type { NodeObject, PodObject, ServiceCidrObject, ServiceObject } from '../snapshot.ts';
import type { NodeEntry } from '../table/entry.ts';
import type { Tenancy } from './tenancy.ts';

// Slices can be written by hand and point anywhere; our proxy would reach it with the node's identity (CVE-2021-25740).
// So an address is believed only when it is of a pod of the slice's namespace, or where its tenant may have others.

/** The one objection that a policy can lift. */
export const NOT_A_POD_ADDRESS = 'is not of a pod of this namespace';
/** Undefined: the address may be used; else why not. */
export type EndpointAddressCheck = (namespace: string, address: string) => string | undefined;

interface PodAddress {
  readonly hostNetwork: boolean;
}

export class EndpointTrustIndex {
  readonly #isEnforced: boolean;
  readonly #serviceIps: ClusterIpIndex;
  #nodes: ReadonlySet<string | undefined> = new Set();
  readonly #pods = new Map<string, Set<PodObject>>();
  /** Of the pods by namespace, made when first asked for. */
  readonly #addresses = new Map<string, ReadonlyMap<string, PodAddress>>();
  /** The networks of a list of texts. */
  readonly #networks = new WeakMap<readonly string[], NetworkSet>();

  constructor(trust: EndpointTrust) {
    this.#isEnforced = trust.kind === 'pods';
    this.#serviceIps = new ClusterIpIndex(trust.kind === 'pods' ? trust.serviceCidrs : []);
  }

  /** All nodes of the cluster, and what Weir itself binds on those of its fleet. */
  setNodes(nodes: readonly NodeObject[], fleet: readonly NodeEntry[]): void {
    const given = nodes.flatMap((node) => [...node.internalIPs, ...node.externalIPs]);
    this.#nodes = new Set([...given.map(canonicalAddress), ...fleet.flatMap((node) => node.bindAddresses)]);
  }

  /** Any address may be believed or not now. */
  setServiceRanges(objects: readonly ServiceCidrObject[]): void {
    this.#serviceIps.setRanges(objects);
  }

  /** Returns addresses that may be believed now, or may not any more, where they are of no pod. */
  setServices(changes: ListDiff<ServiceObject>): readonly string[] {
    return this.#isEnforced ? this.#serviceIps.setServices(changes) : [];
  }

  /** Returns the namespaces in which other addresses may be believed now. */
  setPods({ removed, added }: ListDiff<PodObject>): ReadonlySet<string> {
    const touched = new Set([...removed, ...added].map(({ namespace }) => namespace));
    for (const pod of removed) this.#pods.get(pod.namespace)?.delete(pod);
    for (const pod of added) {
      const pods = this.#pods.get(pod.namespace) ?? new Set();
      this.#pods.set(pod.namespace, pods.add(pod));
    }
    for (const namespace of touched) {
      this.#addresses.delete(namespace);
      if (this.#pods.get(namespace)?.size === 0) this.#pods.delete(namespace);
    }
    return touched;
  }

  checkFor(tenancy: Tenancy): EndpointAddressCheck {
    return (namespace, address) => {
      const canonical = canonicalAddress(address);
      // A slice of names: nobody resolves them, wherever it is from.
      if (canonical === undefined) return 'is not an IP address';
      if (!this.#isEnforced) return undefined;
      if (isSpecialAddress(canonical)) return 'is a loopback, link-local or other special address';
      if (this.#serviceIps.isInRange(canonical)) return 'is in the range of the cluster IPs of Services';
      const pod = this.#addressesOf(namespace).get(canonical);
      if (this.#nodes.has(canonical) && pod?.hostNetwork !== true) return 'is the address of a node';
      if (pod !== undefined) return undefined;
      if (!this.isAllowed(namespace, canonical, tenancy)) return NOT_A_POD_ADDRESS;
      return this.#serviceIps.isClusterIp(canonical) ? 'is the cluster IP of a Service' : undefined;
    };
  }

  /** Whether a policy allows an address there that is of no pod. */
  isAllowed(namespace: string, address: string, tenancy: Tenancy): boolean {
    return this.#allowed(namespace, tenancy).contains(address);
  }

  #addressesOf(namespace: string): ReadonlyMap<string, PodAddress> {
    const known = this.#addresses.get(namespace);
    if (known !== undefined) return known;
    const addresses = new Map<string, PodAddress>();
    for (const pod of this.#pods.get(namespace) ?? []) {
      for (const ip of pod.ips) {
        const canonical = canonicalAddress(ip);
        if (canonical === undefined) continue;
        addresses.set(canonical, { hostNetwork: pod.hostNetwork || addresses.get(canonical)?.hostNetwork === true });
      }
    }
    this.#addresses.set(namespace, addresses);
    return addresses;
  }

  #allowed(namespace: string, tenancy: Tenancy): NetworkSet {
    const membership = tenancy.membershipOf(namespace);
    const { allowedEndpointCIDRs: texts } = membership.kind === 'tenant' ? membership.tenant.grants : membership;
    const networks = this.#networks.get(texts) ?? compileNetworks(texts);
    this.#networks.set(texts, networks);
    return networks;
  }
}

// What is a cluster IP: an endpoint there would lead to another tenant's Service, past its limits and its NetworkPolicies.
export class ClusterIpIndex {
  readonly #settings: readonly string[];
  #networks: NetworkSet;
  /** How many Services have each address: while one follows another, both. */
  readonly #addresses = new Map<string, number>();

  /** `settings`: ranges that hold whatever else is known. */
  constructor(settings: readonly string[]) {
    this.#settings = settings;
    this.#networks = compileNetworks(settings);
  }

  setRanges(objects: readonly ServiceCidrObject[]): void {
    this.#networks = compileNetworks([...this.#settings, ...objects.flatMap(({ cidrs }) => cidrs)]);
  }

  /** Returns the addresses that are one now, or none any more, and are in no range. */
  setServices({ removed, added }: ListDiff<ServiceObject>): readonly string[] {
    const changes = new Map<string, number>();
    const count = (services: readonly ServiceObject[], by: 1 | -1): void => {
      for (const { clusterIPs = [] } of services)
        for (const text of clusterIPs) {
          const address = canonicalAddress(text);
          if (address !== undefined) changes.set(address, (changes.get(address) ?? 0) + by);
        }
    };
    count(added, 1);
    count(removed, -1);
    const others: string[] = [];
    for (const [address, by] of changes) {
      const before = this.#addresses.get(address) ?? 0;
      if (before + by === 0) this.#addresses.delete(address);
      else this.#addresses.set(address, before + by);
      if ((before === 0) !== (before + by === 0) && !this.#networks.contains(address)) others.push(address);
    }
    return others;
  }

  isInRange(address: string): boolean {
    return this.#networks.contains(address);
  }

  isClusterIp(address: string): boolean {
    return this.#addresses.has(address);
  }
}
