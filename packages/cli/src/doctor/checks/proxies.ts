import type { Heartbeat } from '@weir/model';
import { joinList, pluralize } from '../../output/amounts.ts';
import type { Facts } from '../facts.ts';
import { labelledNodes, usableNodes } from '../facts.ts';
import { type CheckResult, error, notChecked, ok, warning } from '../finding.ts';

/**
 * Checks that a proxy runs on every node. If there is neither an API server nor a heartbeat, nothing about the fleet could be checked, and
 * that is an error.
 */
export function proxiesAlive({ heartbeats, nodes, server, fleet }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const byNode = Map.groupBy(heartbeats.value.items, (heartbeat) => heartbeat.node);
  const labelled = nodes.kind === 'known' ? labelledNodes(nodes.value).map((node) => node.name) : undefined;
  const expected = nodes.kind === 'known' ? usableNodes(nodes.value).map((node) => node.name) : [];
  const silent = expected.filter((node) => !byNode.has(node));
  const unlabelled = [...byNode.keys()].filter((node) => labelled !== undefined && !labelled.includes(node));
  // A node counts as draining only if all its proxies drain, because during an upgrade a node has the heartbeats of two proxies.
  const draining = [...byNode]
    .filter(([, heartbeatsOfNode]) => heartbeatsOfNode.every((heartbeat) => heartbeat.draining))
    .map(([node]) => node);
  const unreadable = [...byNode].flatMap(
    ([, heartbeatsOfNode]) =>
      heartbeatsOfNode.find((heartbeat) => heartbeat.unreadable !== undefined)?.unreadable ?? [],
  );
  const withoutTable = [...byNode]
    .filter(([, heartbeatsOfNode]) =>
      heartbeatsOfNode.every(({ applied, unreadable }) => applied === null && unreadable === undefined),
    )
    .map(([node]) => node);
  const problems = [
    silent.length > 0 &&
      `no heartbeat from a proxy on ${joinList(silent)}: check that the proxy's pod runs, has the right WEIR_NODE, and uses the same Redis and WEIR_FLEET as this command`,
    unlabelled.length > 0 &&
      `a proxy runs on ${joinList(unlabelled)} but serves nothing there, because the label role=loadbalancer is missing: label the node, or correct WEIR_NODE`,
    draining.length > 0 && `the proxy on ${joinList(draining)} drains and accepts no new connections`,
    unreadable.length > 0 && unreadable.join('; '),
    withoutTable.length > 0 && `the proxy on ${joinList(withoutTable)} has no routing table yet (see ControllerLeader)`,
  ].filter((text) => text !== false);
  if (problems.length > 0) return silent.length > 0 ? error(problems.join('; ')) : warning(problems.join('; '));
  if (byNode.size === 0 && server.kind === 'unknown')
    return error(
      `no proxy of fleet "${fleet}" sends heartbeats, and no API server can be queried, so nothing about this fleet could be checked; check --fleet and --redis, or use --kubeconfig`,
    );
  if (byNode.size === 0) return warning('no proxy sends heartbeats');
  return ok(`proxies on ${pluralize(byNode.size, 'node')} send heartbeats: ${joinList([...byNode.keys()])}`);
}

export function proxyVersions({ heartbeats, version }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const versions = Map.groupBy(heartbeats.value.items, (heartbeat) => heartbeat.version);
  if (versions.size === 0) return ok('no proxy sends heartbeats, so no version is compared');
  const versionTexts = [...versions].map(([name, users]) => `${name} (${joinList(nodeNames(users))})`);
  if (versions.size > 1)
    return warning(`the proxies have several versions: ${versionTexts.join(', ')}; finish the upgrade`);
  const commandText = versions.has(version) ? '' : `; this command has version ${version}`;
  return ok(
    `all proxies have version ${[...versions.keys()].join()}${commandText}${transportText(heartbeats.value.items)}`,
  );
}

/** Returns the transports that the proxies report, with their nodes if there are several. Empty if no proxy reports its transport. */
function transportText(heartbeats: readonly Heartbeat[]): string {
  const reporting = heartbeats.filter(({ transport }) => transport !== undefined);
  const transports = [...Map.groupBy(reporting, ({ transport }) => transport)];
  if (transports.length === 0) return '';
  if (transports.length === 1) return `; transport ${transports[0]?.[0]}`;
  return `; transports ${transports.map(([name, users]) => `${name} (${joinList(nodeNames(users))})`).join(', ')}`;
}

export function proxyPorts({ heartbeats }: Facts): CheckResult {
  if (heartbeats.kind === 'unknown') return notChecked(heartbeats);
  const failed = heartbeats.value.items.flatMap(({ node, listeners }) =>
    listeners.flatMap((listener) => (listener.error === null ? [] : `${node}: ${listener.error}`)),
  );
  if (failed.length > 0)
    return error(`${pluralize(failed.length, 'port')} could not be bound: ${joinList([...new Set(failed)], 5)}`);
  const bound = heartbeats.value.items.reduce((sum, { listeners }) => sum + listeners.length, 0);
  return ok(`no bind errors on ${pluralize(bound, 'port')}`);
}

const RUN_ON_NODE_HINT =
  'run weir doctor on one of these nodes, or search the logs of their proxies for "a kernel setting of this host"';

/** The settings that the chart applies. Without them clients lose connections, so doctor reports an error. */
const REQUIRED_KERNEL_SETTINGS = ['net.ipv4.tcp_migrate_req', 'net.core.somaxconn'];

/**
 * Lists the kernel warnings that proxies report. If the proxy on this machine does not report kernel settings, uses the settings that this
 * command has read.
 */
export function kernelSettings({ heartbeats, nodes, host }: Facts): CheckResult {
  const items = heartbeats.kind === 'known' ? heartbeats.value.items : [];
  const usable = nodes.kind === 'known' ? usableNodes(nodes.value) : [];
  const warningsByNode = new Map(
    items.flatMap(({ node, hostAdvice }) => (hostAdvice === undefined ? [] : [[node, hostAdvice]])),
  );
  const localNode = usable.find((node) => node.internalIPs.some((address) => host.addresses.includes(address)));
  if (localNode !== undefined && host.kernelWarnings !== undefined && !warningsByNode.has(localNode.name)) {
    warningsByNode.set(localNode.name, host.kernelWarnings.map(localWarningText));
  }
  const names = new Set([...usable.map((node) => node.name), ...nodeNames(items)]);
  const unchecked = [...names].filter((name) => !warningsByNode.has(name));
  const problems = groupWarnings(warningsByNode);
  if (names.size === 0) problems.push('not checked: no node is known');
  if (unchecked.length > 0)
    problems.push(
      `not checked: the proxies on ${joinList(unchecked)} do not report kernel settings; ${RUN_ON_NODE_HINT}`,
    );
  if (problems.length === 0) return ok(`the settings are right on ${joinList([...warningsByNode.keys()])}`);
  const isSettingMissing = [...warningsByNode.values()].some((texts) => texts.some(namesRequiredSetting));
  return isSettingMissing ? error(problems.join('; ')) : warning(problems.join('; '));
}

function namesRequiredSetting(text: string): boolean {
  return REQUIRED_KERNEL_SETTINGS.some((name) => text.includes(name));
}

/** Marks a warning about the process of this command, because the proxy may have a different limit of open files. */
function localWarningText(text: string): string {
  return `in this shell, ${text}`;
}

/** Returns one text per warning, with the names of all nodes that have this warning. */
function groupWarnings(warningsByNode: ReadonlyMap<string, readonly string[]>): string[] {
  const all = [...warningsByNode].flatMap(([node, texts]) => texts.map((text) => ({ node, text })));
  const byText = Map.groupBy(all, ({ text }) => text);
  return [...byText].map(([text, ofText]) => `${joinList(ofText.map(({ node }) => node))}: ${text}`);
}

function nodeNames(heartbeats: readonly Heartbeat[]): string[] {
  return [...new Set(heartbeats.map((heartbeat) => heartbeat.node))];
}
