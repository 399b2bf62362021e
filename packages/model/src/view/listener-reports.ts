import type { Heartbeat, ListenerReport } from '../heartbeat.ts';
import type { ListenerEntry } from '../table/entry.ts';

/** What the proxies report of each listener; a node whose proxies say what they said before costs a comparison. */
export class ListenerReportIndex {
  /** By node: its lives, draining ones first, then the older ones. */
  #heartbeatsByNode: ReadonlyMap<string, readonly Heartbeat[]> = new Map();
  /** By node, by listener and Service. */
  readonly #reportsByNode = new Map<string, ReadonlyMap<string, ListenerReport>>();

  /** Returns the UIDs of the Services of which something else is reported now. */
  update(heartbeats: readonly Heartbeat[]): Set<string> {
    const before = this.#heartbeatsByNode;
    const lives = groupByNode(heartbeats);
    this.#heartbeatsByNode = lives;
    const services = new Set<string>();
    for (const node of new Set([...before.keys(), ...lives.keys()])) {
      const now = lives.get(node) ?? [];
      if (isSameHeartbeats(before.get(node) ?? [], now)) continue;
      const old = this.#reportsByNode.get(node) ?? NO_REPORTS;
      const reports = reportsOf(now);
      if (now.length === 0) this.#reportsByNode.delete(node);
      else this.#reportsByNode.set(node, reports);
      for (const [key, report] of reports) if (!isSameReport(report, old.get(key))) services.add(report.service);
      for (const [key, report] of old) if (!reports.has(key)) services.add(report.service);
    }
    return services;
  }

  /** A report for another Service is old, and none. */
  reportOf(listener: ListenerEntry): ListenerReport | undefined {
    return this.#reportsByNode.get(listener.node)?.get(keyOf(listener));
  }
}

const NO_REPORTS: ReadonlyMap<string, ListenerReport> = new Map();

function groupByNode(heartbeats: readonly Heartbeat[]): Map<string, Heartbeat[]> {
  const lives = new Map<string, Heartbeat[]>();
  for (const heartbeat of heartbeats) {
    const known = lives.get(heartbeat.node);
    if (known === undefined) lives.set(heartbeat.node, [heartbeat]);
    else known.push(heartbeat);
  }
  for (const each of lives.values()) each.sort((a, b) => Number(b.draining) - Number(a.draining) || a.life - b.life);
  return lives;
}

/** Of two lives on one node (an upgrade) the one that serves, then the newer one. */
function reportsOf(lives: readonly Heartbeat[]): Map<string, ListenerReport> {
  const reports = new Map<string, ListenerReport>();
  for (const { listeners } of lives) {
    for (const report of listeners) {
      const key = keyOf(report);
      if (report.bound || !reports.has(key)) reports.set(key, report);
    }
  }
  return reports;
}

function keyOf({ id, service }: { readonly id: string; readonly service: string }): string {
  return `${id} ${service}`;
}

function isSameHeartbeats(a: readonly Heartbeat[], b: readonly Heartbeat[]): boolean {
  return a.length === b.length && a.every((life, index) => isSameReports(life.listeners, b[index]?.listeners ?? []));
}

function isSameReports(a: readonly ListenerReport[], b: readonly ListenerReport[]): boolean {
  return a === b || (a.length === b.length && a.every((report, index) => isSameReport(report, b[index])));
}

function isSameReport(a: ListenerReport, b: ListenerReport | undefined): boolean {
  if (a === b) return true;
  if (b === undefined || a.id !== b.id || a.service !== b.service) return false;
  return a.bound === b.bound && a.listening === b.listening && a.error === b.error;
}
