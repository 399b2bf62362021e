import { parseCidr } from '@weir/model';
import type { NodeFact } from './facts.ts';

/** Annotations in which network plugins say the node's address towards pods of other nodes. */
const TUNNEL_ADDRESS_ANNOTATIONS = [
  'network.cilium.io/ipv4-cilium-host',
  'network.cilium.io/ipv6-cilium-host',
  'projectcalico.org/IPv4IPIPTunnelAddr',
  'projectcalico.org/IPv4VXLANTunnelAddr',
  'projectcalico.org/IPv6VXLANTunnelAddr',
] as const;
const FLANNEL_BACKEND_ANNOTATION = 'flannel.alpha.coreos.com/backend-type';

/** Through an overlay a process in the host's network is seen with the address of the overlay's device, not with the InternalIP. */
export function tunnelAddresses({ annotations, podCIDRs }: NodeFact): readonly string[] {
  const said = TUNNEL_ADDRESS_ANNOTATIONS.flatMap((name) => annotations[name] ?? []);
  // Its vxlan device has the first address of the node's range.
  const isVxlan = annotations[FLANNEL_BACKEND_ANNOTATION] === 'vxlan';
  const flannel = isVxlan ? podCIDRs.flatMap((range) => parseCidr(range)?.address.toString() ?? []) : [];
  return [...said, ...flannel];
}
