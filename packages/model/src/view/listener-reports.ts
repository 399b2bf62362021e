import type { Heartbeat, ListenerReport } from '../heartbeat.ts';
import type { ListenerEntry } from '../table/entry.ts';

/** Indexes the reports of the proxies by listener. If the reports of a node did not change, an update costs only a comparison. */
export class ListenerReportIndex {
  /** By node, the heartbeats of its proxies: draining proxies first, then by incarnation. */
  #heartbeatsByNode: ReadonlyMap<string, readonly Heartbeat[]> = new Map();
  /** By node, the reports by listener and Service. */
  readonly #reportsByNode = new Map<string, ReadonlyMap<string, ListenerReport>>();

  /** Replaces all heartbeats; returns the UIDs of the Services whose reports changed. */
  update(heartbeats: readonly Heartbeat[]): Set<string> {
    const before = this.#heartbeatsByNode;
    const after = groupByNode(heartbeats);
    this.#heartbeatsByNode = after;
    const services = new Set<string>();
    for (const node of new Set([...before.keys(), ...after.keys()])) {
      const current = after.get(node) ?? [];
      if (haveSameReports(before.get(node) ?? [], current)) continue;
      const oldReports = this.#reportsByNode.get(node) ?? NO_REPORTS;
      const reports = reportsOf(current);
      if (current.length === 0) this.#reportsByNode.delete(node);
      else this.#reportsByNode.set(node, reports);
      for (const [key, report] of reports) if (!isSameReport(report, oldReports.get(key))) services.add(report.service);
      for (const [key, report] of oldReports) if (!reports.has(key)) services.add(report.service);
    }
    return services;
  }

  /** Returns the report on a listener; undefined if there is no report on the listener with its present Service. */
  reportOf(listener: ListenerEntry): ListenerReport | undefined {
    return this.#reportsByNode.get(listener.node)?.get(keyOf(listener));
  }
}

const NO_REPORTS: ReadonlyMap<string, ListenerReport> = new Map();

function groupByNode(heartbeats: readonly Heartbeat[]): Map<string, Heartbeat[]> {
  const byNode = Map.groupBy(heartbeats, ({ node }) => node);
  for (const nodeHeartbeats of byNode.values())
    nodeHeartbeats.sort((a, b) => Number(b.draining) - Number(a.draining) || a.life - b.life);
  return byNode;
}

/**
 * Returns one report for each listener. During an upgrade two proxies of a node may report on the same listener. A proxy that has bound the
 * port takes precedence; if both proxies have bound the port, the newer proxy takes precedence.
 */
function reportsOf(heartbeats: readonly Heartbeat[]): Map<string, ListenerReport> {
  const reports = new Map<string, ListenerReport>();
  for (const { listeners } of heartbeats) {
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

function haveSameReports(a: readonly Heartbeat[], b: readonly Heartbeat[]): boolean {
  return (
    a.length === b.length && a.every(({ listeners }, index) => isSameReports(listeners, b[index]?.listeners ?? []))
  );
}

function isSameReports(a: readonly ListenerReport[], b: readonly ListenerReport[]): boolean {
  return a === b || (a.length === b.length && a.every((report, index) => isSameReport(report, b[index])));
}

function isSameReport(a: ListenerReport, b: ListenerReport | undefined): boolean {
  if (a === b) return true;
  if (b === undefined || a.id !== b.id || a.service !== b.service) return false;
  return a.bound === b.bound && a.listening === b.listening && a.error === b.error;
}
