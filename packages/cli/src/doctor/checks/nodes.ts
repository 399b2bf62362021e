import { NODE_ADDRESSES_ANNOTATION, nodeAddressesOf, nodePoolOf, parseCidr } from '@weir/model';
import { joinList, pluralize } from '../../output/amounts.ts';
import {
  exclusionReason,
  type Facts,
  labelledNodes,
  managedServices,
  type NodeFact,
  POOL_KEY,
  serviceName,
  usableNodes,
} from '../facts.ts';
import { type CheckResult, error, notChecked, ok, warning } from '../finding.ts';

const LABEL_COMMAND = 'kubectl label node NAME role=loadbalancer';

export function loadBalancingNodes({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const labelled = labelledNodes(nodes.value);
  const names = usableNodes(nodes.value).map((node) => node.name);
  if (labelled.length === 0) {
    return error(
      `none of ${pluralize(nodes.value.length, 'node')} has the label role=loadbalancer, so nothing is served; label a node: ${LABEL_COMMAND}`,
    );
  }
  if (names.length === 0) {
    return error(
      `none of the labelled nodes is usable (see NodesLeftOut and NodeAddresses), so no new Service is served; make one of these nodes usable, or label another node: ${LABEL_COMMAND}`,
    );
  }
  if (names.length === 1) {
    return warning(
      `only ${names[0]} is usable, so nothing is served while that node is down; label a second node: ${LABEL_COMMAND}`,
    );
  }
  return ok(`${pluralize(names.length, 'node')}: ${joinList(names)}`);
}

/**
 * Reports labelled nodes that get no Services or may lose their Services. A node that is not ready keeps its Services while its proxy sends
 * heartbeats.
 */
export function nodesLeftOut({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const labelled = labelledNodes(nodes.value);
  const reasons = labelled.flatMap((node) => exclusionReason(node) ?? notReadyText(node) ?? []);
  return reasons.length === 0
    ? ok('every labelled node is ready, and none is excluded, cordoned or being deleted')
    : warning(
        `of ${pluralize(labelled.length, 'labelled node')}, these get no Services or may lose them: ${joinList(reasons)}`,
      );
}

function notReadyText({ name, isReady }: NodeFact): string | undefined {
  return isReady ? undefined : `${name} is not ready (kubectl describe node ${name})`;
}

export function nodeAddresses({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const labelled = labelledNodes(nodes.value);
  const invalid = labelled.flatMap((node) =>
    nodeAddressesOf(node).invalid.map(
      (text) => `${node.name}: annotation ${NODE_ADDRESSES_ANNOTATION}: "${text}" is not an IP address`,
    ),
  );
  const without = labelled
    .filter((node) => nodeAddressesOf(node).bind.length === 0)
    .map(
      ({ name }) =>
        `${name} has no InternalIP, so no proxy can listen there (the kubelet or the cloud provider sets the InternalIP)`,
    );
  const all = [...invalid, ...without];
  if (all.length > 0) return invalid.length > 0 ? error(joinList(all)) : warning(joinList(all));
  return ok('every labelled node has an address to bind');
}

export function nodePools(facts: Facts): CheckResult {
  const { nodes, policies, services } = facts;
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const members = Map.groupBy(usableNodes(nodes.value), nodePoolOf);
  const demands: { pool: string; by: string }[] = [];
  if (policies.kind === 'known') {
    for (const { name, pools } of policies.value)
      demands.push(...pools.map((pool) => ({ pool, by: `TenantPolicy ${name}` })));
  }
  if (services.kind === 'known') {
    for (const service of managedServices(services.value, facts)) {
      if (service.pool !== null) demands.push({ pool: service.pool, by: `Service ${serviceName(service)}` });
    }
  }
  const empty = Map.groupBy(
    demands.filter(({ pool }) => !members.has(pool)),
    ({ pool }) => pool,
  );
  if (empty.size === 0) {
    const pools = [...members].map(([pool, poolNodes]) => `${pool}: ${joinList(poolNodes.map((node) => node.name))}`);
    return ok(pools.length === 0 ? 'no node is usable, so every pool is empty' : pools.join('; '));
  }
  const poolTexts = [...empty].map(
    ([pool, by]) =>
      `"${pool}" (requested by ${joinList(
        by.map((demand) => demand.by),
        3,
      )})`,
  );
  return warning(
    `no usable node is in the pool ${joinList(poolTexts)}; add a node (kubectl label node NAME ${POOL_KEY}=POOL), or correct the TenantPolicy or Service`,
  );
}

/** Lists the addresses from which proxies connect to pods. These are addresses of the nodes, and NetworkPolicies must allow them. */
export function proxySourceAddresses({ nodes }: Facts): CheckResult {
  if (nodes.kind === 'unknown') return notChecked(nodes);
  const usable = usableNodes(nodes.value);
  if (usable.length === 0) return ok('no node is usable, so no proxy connects to pods');
  const all = usable.flatMap((node) => [...node.internalIPs, ...tunnelAddresses(node)]);
  return ok(
    `pods see these addresses instead of the client's address, so NetworkPolicies must allow them: ${joinList([...new Set(all)], 20)}`,
  );
}

/** Annotations in which network plugins store the address from which a node connects to pods of other nodes. */
const TUNNEL_ADDRESS_ANNOTATIONS = [
  'network.cilium.io/ipv4-cilium-host',
  'network.cilium.io/ipv6-cilium-host',
  'projectcalico.org/IPv4IPIPTunnelAddr',
  'projectcalico.org/IPv4VXLANTunnelAddr',
  'projectcalico.org/IPv6VXLANTunnelAddr',
] as const;

const FLANNEL_BACKEND_ANNOTATION = 'flannel.alpha.coreos.com/backend-type';

/** Returns the addresses of the node's tunnel device. In an overlay network pods see these addresses instead of the InternalIP. */
function tunnelAddresses({ annotations, podCIDRs }: NodeFact): readonly string[] {
  const annotated = TUNNEL_ADDRESS_ANNOTATIONS.flatMap((name) => annotations[name] ?? []);
  // Flannel gives its VXLAN device the first address of the node's pod CIDR.
  const isVxlan = annotations[FLANNEL_BACKEND_ANNOTATION] === 'vxlan';
  const flannel = isVxlan ? podCIDRs.flatMap((range) => parseCidr(range)?.address.toString() ?? []) : [];
  return [...annotated, ...flannel];
}
