// Slices can be written by hand and point anywhere; our proxy would reach it with the node's identity (CVE-2021-25740).
// So an address is believed only when it is of a pod of the slice's namespace.
import { type Cidr, canonicalAddress, isSpecialAddress, isWithin, parseCidr } from '../match/cidr.ts';
import type { Snapshot } from '../snapshot.ts';
import type { NodeEntry } from '../table/entry.ts';

/** Undefined: the address may be used; else why not. */
export type TrustCheck = (namespace: string, address: string) => string | undefined;

export function trustFor(snapshot: Snapshot, fleet: readonly NodeEntry[]): TrustCheck {
  const { trust } = snapshot.settings;
  if (trust.kind === 'files') return () => undefined;
  const networks = trust.serviceCidrs.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined);
  const nodes = nodeAddresses(snapshot, fleet);
  const pods = podAddresses(snapshot);
  return (namespace, address) => {
    const canonical = canonicalAddress(address);
    if (canonical === undefined) return 'is not an IP address';
    if (isSpecialAddress(canonical)) return 'is a loopback, link-local or other special address';
    if (isWithin(canonical, networks)) return 'is in the range of the cluster IPs of Services';
    const pod = pods.get(namespace)?.get(canonical);
    if (pod === undefined) return 'is not of a pod of this namespace';
    if (nodes.has(canonical) && !pod.hostNetwork) return 'is the address of a node';
    return undefined;
  };
}

/** Of all nodes, and what Weir itself binds on those of its fleet. */
function nodeAddresses(snapshot: Snapshot, fleet: readonly NodeEntry[]): ReadonlySet<string | undefined> {
  const given = snapshot.nodes.flatMap((node) => [...node.internalIPs, ...node.externalIPs]);
  return new Set([...given.map(canonicalAddress), ...fleet.flatMap((node) => node.bindAddresses)]);
}

function podAddresses(snapshot: Snapshot): Map<string, Map<string, { readonly hostNetwork: boolean }>> {
  const byNamespace = new Map<string, Map<string, { readonly hostNetwork: boolean }>>();
  for (const pod of snapshot.pods) {
    const addresses = byNamespace.get(pod.namespace) ?? new Map();
    for (const ip of pod.ips) {
      const canonical = canonicalAddress(ip);
      if (canonical === undefined) continue;
      addresses.set(canonical, { hostNetwork: pod.hostNetwork || addresses.get(canonical)?.hostNetwork === true });
    }
    byNamespace.set(pod.namespace, addresses);
  }
  return byNamespace;
}
