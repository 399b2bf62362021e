import { isLoadBalancerNode, type NamespaceObject, type NodeObject, type Problem } from '@weir/model';
import { LOAD_BALANCER_ROLE, NAMESPACE_NAME_LABEL, ROLE_LABEL } from '../../parse/cluster-objects.ts';
import { uidFor } from './manifest-kinds.ts';

/** A node given with `--node NAME=ADDRESS`. */
export interface CommandLineNode {
  readonly name: string;
  readonly address: string;
}

const LOCAL_NODE: CommandLineNode = { name: 'local', address: '127.0.0.1' };

/**
 * Returns only the Nodes of the manifests if any of them is a load balancer node. Otherwise adds the nodes of the command line, or
 * `LOCAL_NODE` if the command line names no nodes.
 */
export function fleetNodes(
  manifests: readonly NodeObject[],
  commandLineNodes: readonly CommandLineNode[],
): { readonly nodes: readonly NodeObject[]; readonly problems: readonly Problem[] } {
  if (manifests.some(isLoadBalancerNode)) return { nodes: manifests, problems: [] };
  const implied = (commandLineNodes.length === 0 ? [LOCAL_NODE] : commandLineNodes).map(nodeOf);
  const names = new Set(implied.map((node) => node.name));
  const nodes = [...implied, ...manifests.filter((node) => !names.has(node.name))];
  return {
    nodes: Object.freeze(nodes.sort((a, b) => (a.name < b.name ? -1 : 1))),
    problems: unlabelledNodesProblem(manifests, implied),
  };
}

function nodeOf({ name, address }: CommandLineNode): NodeObject {
  return Object.freeze({
    uid: uidFor({ kind: 'Node', name }),
    name,
    labels: Object.freeze({ [ROLE_LABEL]: LOAD_BALANCER_ROLE }),
    annotations: Object.freeze({}),
    createdAt: null,
    internalIPs: Object.freeze([address]),
    externalIPs: Object.freeze([]),
    unschedulable: false,
  });
}

function unlabelledNodesProblem(manifests: readonly NodeObject[], implied: readonly NodeObject[]): Problem[] {
  const [first] = manifests;
  if (first === undefined) return [];
  const fleet = implied.map((node) => `${node.name} (${node.internalIPs.join(', ')})`).join(', ');
  return [
    {
      code: 'NoNodes',
      subject: `Node ${first.name}`,
      severity: 'warning',
      heals: false,
      message: `no Node in the manifests has the label ${ROLE_LABEL}=${LOAD_BALANCER_ROLE}, so the fleet is ${fleet}; label the Nodes that should carry traffic`,
    },
  ];
}

/** Adds the namespaces that Services name but no manifest defines, because few users write a manifest for `default`. */
export function withImpliedNamespaces(
  namespaces: readonly NamespaceObject[],
  serviceNamespaces: Iterable<string>,
): readonly NamespaceObject[] {
  const byName = new Map(namespaces.map((each) => [each.name, each]));
  for (const name of serviceNamespaces) {
    if (byName.has(name)) continue;
    byName.set(
      name,
      Object.freeze({
        uid: uidFor({ kind: 'Namespace', name }),
        name,
        labels: Object.freeze({ [NAMESPACE_NAME_LABEL]: name }),
        annotations: Object.freeze({}),
        createdAt: null,
      }),
    );
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
