// What is a cluster IP: an endpoint there would lead to another tenant's Service, past its limits and its NetworkPolicies.
import { canonicalAddress } from '../match/cidr.ts';
import { compileNetworks, type NetworkSet } from '../match/networks.ts';
import type { ServiceCidrObject, ServiceObject } from '../snapshot.ts';
import type { ListDiff } from './changed-in.ts';

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
