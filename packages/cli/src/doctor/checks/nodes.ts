import { NODE_ADDRESSES_ANNOTATION, nodeAddressesOf, nodePoolOf, parseCidr } from '@weir/model';
import {
  exclusionReason,
  type Facts,
  labelledNodes,
  managedServices,
  type NodeFact,
  serviceName,
  usableNodes,
} from '../facts.ts';
import { type CheckResult, error, joinList, notChecked, ok, pluralize, warning } from '../finding.ts';

const LABEL_COMMAND = 'kubectl label node NAME role=loadbalancer';

export function loadBalancingNodes({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const labelled = labelledNodes(nodes.value);
  const names = usableNodes(nodes.value).map((node) => node.name);
  if (labelled.length === 0) {
    return error(
      `none of ${pluralize(nodes.value.length, 'node')} carries the label role=loadbalancer, so nothing is served; ${LABEL_COMMAND}`,
    );
  }
  if (names.length === 0) {
    return error(
      `none of the labelled nodes can be used (NodesLeftOut, NodeAddresses), so nothing new is served; take one back, or ${LABEL_COMMAND}`,
    );
  }
  if (names.length === 1) {
    return warning(
      `only ${names[0]} carries load balancers: nothing is served while it is down; ${LABEL_COMMAND} for a second one`,
    );
  }
  return ok(`${pluralize(names.length, 'node')}: ${joinList(names)}`);
}

/** Labelled, but no Service is placed there; a node that is not ready still counts, because its proxy's heartbeat decides. */
export function nodesLeftOut({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const labelled = labelledNodes(nodes.value);
  const reasons = labelled.flatMap((node) => exclusionReason(node) ?? notReadyText(node) ?? []);
  return reasons.length === 0
    ? ok('no labelled node is excluded, cordoned or not ready')
    : warning(`of ${pluralize(labelled.length, 'labelled node')} some are left out, or may be: ${joinList(reasons)}`);
}

function notReadyText({ name, isReady }: NodeFact): string | undefined {
  return isReady ? undefined : `${name} is not ready (kubectl describe node ${name})`;
}

export function nodeAddresses({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const labelled = labelledNodes(nodes.value);
  const wrong = labelled.flatMap((node) =>
    nodeAddressesOf(node).invalid.map(
      (text) => `${node.name}: annotation ${NODE_ADDRESSES_ANNOTATION}: "${text}" is not an IP address`,
    ),
  );
  const without = labelled
    .filter((node) => nodeAddressesOf(node).bind.length === 0)
    .map(
      ({ name }) => `${name} has no InternalIP, so nothing is bound there (the kubelet or its cloud provider sets it)`,
    );
  const all = [...wrong, ...without];
  if (all.length > 0) return wrong.length > 0 ? error(joinList(all)) : warning(joinList(all));
  return ok('every labelled node has an address to bind');
}

const POOL_LABEL = 'weir.dev/pool';

export function nodePools(facts: Facts): CheckResult {
  const { nodes, policies, services } = facts;
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const members = Map.groupBy(usableNodes(nodes.value), nodePoolOf);
  const wishes: { pool: string; by: string }[] = [];
  if (policies.kind === 'known') {
    for (const { name, pools } of policies.value)
      wishes.push(...pools.map((pool) => ({ pool, by: `TenantPolicy ${name}` })));
  }
  if (services.kind === 'known') {
    for (const service of managedServices(services.value, facts)) {
      if (service.pool !== null) wishes.push({ pool: service.pool, by: `Service ${serviceName(service)}` });
    }
  }
  const empty = Map.groupBy(
    wishes.filter(({ pool }) => !members.has(pool)),
    ({ pool }) => pool,
  );
  if (empty.size === 0) {
    const pools = [...members].map(([pool, of]) => `${pool}: ${joinList(of.map((node) => node.name))}`);
    return ok(pools.length === 0 ? 'there are no nodes to be in pools' : pools.join('; '));
  }
  const told = [...empty].map(
    ([pool, by]) =>
      `"${pool}" (${joinList(
        by.map((wish) => wish.by),
        3,
      )})`,
  );
  return warning(
    `no usable node is in the pool ${joinList(told)}; kubectl label node NAME ${POOL_LABEL}=POOL, or correct who names it`,
  );
}

/** Whoever writes a NetworkPolicy has to know: proxies are in the host's network, so pods see an address of the node. */
export function proxySourceAddresses({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const usable = usableNodes(nodes.value);
  if (usable.length === 0) return ok('there are no nodes that pods could see connections from');
  const all = usable.flatMap((node) => [...node.internalIPs, ...tunnelAddresses(node)]);
  return ok(
    `NetworkPolicies have to let these in, which pods see instead of the client: ${joinList([...new Set(all)], 20)}`,
  );
}

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
