import type { NamespaceObject, NodeObject, Problem } from '@weir/model';
import { namespaceLabels, uidFor } from './manifest-kinds.ts';

/** `--node NAME=ADDRESS`. */
export interface CommandLineNode {
  readonly name: string;
  readonly address: string;
}

const ROLE_LABEL = 'role';
const LOADBALANCER_ROLE = 'loadbalancer';
const LOCAL_NODE: CommandLineNode = { name: 'local', address: '127.0.0.1' };

/** The nodes of the manifests when they make a fleet, else those of the command line, else one on loopback. */
export function fleetNodes(
  manifests: readonly NodeObject[],
  given: readonly CommandLineNode[],
): { readonly nodes: readonly NodeObject[]; readonly problems: readonly Problem[] } {
  if (manifests.some((node) => node.labels[ROLE_LABEL] === LOADBALANCER_ROLE))
    return { nodes: manifests, problems: [] };
  const made = (given.length === 0 ? [LOCAL_NODE] : given).map(nodeOf);
  const names = new Set(made.map((node) => node.name));
  const nodes = [...made, ...manifests.filter((node) => !names.has(node.name))];
  return {
    nodes: Object.freeze(nodes.sort((a, b) => (a.name < b.name ? -1 : 1))),
    problems: unlabelledNodesProblem(manifests, made),
  };
}

function nodeOf({ name, address }: CommandLineNode): NodeObject {
  return Object.freeze({
    uid: uidFor({ kind: 'Node', name }),
    name,
    labels: Object.freeze({ [ROLE_LABEL]: LOADBALANCER_ROLE }),
    annotations: Object.freeze({}),
    createdAt: null,
    internalIPs: Object.freeze([address]),
    externalIPs: Object.freeze([]),
    unschedulable: false,
  });
}

function unlabelledNodesProblem(manifests: readonly NodeObject[], made: readonly NodeObject[]): Problem[] {
  const [first] = manifests;
  if (first === undefined) return [];
  const fleet = made.map((node) => `${node.name} (${node.internalIPs.join(', ')})`).join(', ');
  return [
    {
      code: 'NoNodes',
      subject: `Node ${first.name}`,
      severity: 'warning',
      heals: false,
      message: `no Node of the manifests carries the label ${ROLE_LABEL}=${LOADBALANCER_ROLE}, so the fleet is ${fleet}; put the label on those that shall carry traffic`,
    },
  ];
}

/** A namespace that is only mentioned exists as well: nobody writes manifests for `default`. */
export function withImpliedNamespaces(
  namespaces: readonly NamespaceObject[],
  mentioned: Iterable<string>,
): readonly NamespaceObject[] {
  const byName = new Map(namespaces.map((each) => [each.name, each]));
  for (const name of mentioned) {
    if (byName.has(name)) continue;
    byName.set(
      name,
      Object.freeze({
        uid: uidFor({ kind: 'Namespace', name }),
        name,
        labels: Object.freeze(namespaceLabels(name)),
        annotations: Object.freeze({}),
        createdAt: null,
      }),
    );
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
