import type { Heartbeat } from '@weir/model';
import type { Facts } from '../facts.ts';
import { labelledNodes, usableNodes } from '../facts.ts';
import { type CheckResult, error, joinList, notChecked, ok, pluralize, warning } from '../finding.ts';

export function proxiesAlive({ heartbeats, nodes }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const beats = Map.groupBy(heartbeats.value.items, (beat) => beat.node);
  const labelled = nodes.kind === 'known' ? labelledNodes(nodes.value).map((node) => node.name) : undefined;
  const wanted = nodes.kind === 'known' ? usableNodes(nodes.value).map((node) => node.name) : [];
  const silent = wanted.filter((node) => !beats.has(node));
  const stray = [...beats.keys()].filter((node) => labelled !== undefined && !labelled.includes(node));
  const leaving = [...beats].filter(([, lives]) => lives.every((beat) => beat.draining)).map(([node]) => node);
  const strange = [...beats].flatMap(
    ([, lives]) => lives.find((beat) => beat.unreadable !== undefined)?.unreadable ?? [],
  );
  const idle = [...beats]
    .filter(([, lives]) => lives.every((beat) => beat.applied === null && beat.unreadable === undefined))
    .map(([node]) => node);
  const told = [
    silent.length > 0 &&
      `no proxy is heard of ${joinList(silent)}: look at the pod there, and whether it reaches Redis with the same WEIR_FLEET and WEIR_NODE`,
    stray.length > 0 &&
      `a proxy is heard of ${joinList(stray)}, which carries no label role=loadbalancer, so it serves nothing: label it, or correct WEIR_NODE`,
    leaving.length > 0 && `${joinList(leaving)} only drains: nothing new is served there`,
    strange.length > 0 && strange.join('; '),
    idle.length > 0 && `${joinList(idle)} has no routing table yet (ControllerLeader)`,
  ].filter((text) => text !== false);
  if (told.length > 0) return silent.length > 0 ? error(told.join('; ')) : warning(told.join('; '));
  if (beats.size === 0) return warning('no proxy is heard at all');
  return ok(`${pluralize(beats.size, 'node')} with a proxy that is heard: ${joinList([...beats.keys()])}`);
}

export function proxyVersions({ heartbeats, version }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const versions = Map.groupBy(heartbeats.value.items, (beat) => beat.version);
  if (versions.size === 0) return ok('no proxy is heard that could have a version');
  const told = [...versions].map(([each, beats]) => `${each} (${joinList(nodeNames(beats))})`);
  if (versions.size > 1) return warning(`not all proxies are of one version: ${told.join(', ')}; end the upgrade`);
  return ok(`all are ${[...versions.keys()].join()}${versions.has(version) ? '' : `; this command is ${version}`}`);
}

export function proxyPorts({ heartbeats }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const failed = heartbeats.value.items.flatMap(({ node, listeners }) =>
    listeners.flatMap((listener) => (listener.error === null ? [] : `${node}: ${listener.error}`)),
  );
  if (failed.length > 0)
    return error(`${pluralize(failed.length, 'port')} could not be bound: ${joinList([...new Set(failed)], 5)}`);
  const bound = heartbeats.value.items.reduce((sum, { listeners }) => sum + listeners.length, 0);
  return ok(`${pluralize(bound, 'listener')}, none that could not be bound`);
}

const RUN_ON_NODE_HINT =
  'run weir doctor on one of them, or look for "this host is not set" in the log of their proxies';

/** As the proxies tell it; of those that do not, what can be seen where doctor runs. */
export function kernelSettings({ heartbeats, nodes, host }: Facts): CheckResult {
  const beats = heartbeats.kind === 'known' ? heartbeats.value.items : [];
  const usable = nodes.kind === 'known' ? usableNodes(nodes.value) : [];
  const told = new Map(beats.flatMap(({ node, hostAdvice }) => (hostAdvice === undefined ? [] : [[node, hostAdvice]])));
  const here = usable.find((node) => node.internalIPs.some((address) => host.addresses.includes(address)));
  if (here !== undefined && host.kernelWarnings !== undefined && !told.has(here.name)) {
    told.set(here.name, host.kernelWarnings.map(asSeenLocally));
  }
  const names = new Set([...usable.map((node) => node.name), ...nodeNames(beats)]);
  const unseen = [...names].filter((name) => !told.has(name));
  const parts = groupWarnings(told);
  if (names.size === 0) parts.push('not checked: no node is known');
  if (unseen.length > 0) parts.push(`not checked: ${joinList(unseen)}, whose proxies do not tell; ${RUN_ON_NODE_HINT}`);
  return parts.length === 0 ? ok(`as they should be on ${joinList([...told.keys()])}`) : warning(parts.join('; '));
}

/** The limit of open files is that of this process, which may differ from the proxy's. */
function asSeenLocally(advice: string): string {
  return `as this shell sees it, ${advice}`;
}

/** What several nodes lack is told once. */
function groupWarnings(told: ReadonlyMap<string, readonly string[]>): string[] {
  const all = [...told].flatMap(([node, texts]) => texts.map((text) => ({ node, text })));
  const nodes = Map.groupBy(all, ({ text }) => text);
  return [...nodes].map(([text, of]) => `${joinList(of.map(({ node }) => node))}: ${text}`);
}

function nodeNames(beats: readonly Heartbeat[]): string[] {
  return [...new Set(beats.map((beat) => beat.node))];
}
