import { type Heartbeat, type ListenerReport, nodeId, type RoutingTable } from '@weir/model';

/** What one node said last, and what of it was an error: a life with nothing else. */
interface LastReport {
  readonly listeners: readonly ListenerReport[];
  readonly errors: Heartbeat | undefined;
}

/**
 * What proxies said that they cannot open. One that is silent, or has just begun and knows no table yet, has not opened it
 * meanwhile: else a Service would be told that all is well, and soon after that it is not.
 */
export class LastListenerErrors {
  readonly #lastReportByNode = new Map<string, LastReport>();

  /** The heartbeats, with the errors of those who say nothing now. */
  withLastErrors(heartbeats: readonly Heartbeat[], { entries }: RoutingTable): readonly Heartbeat[] {
    const speaking = new Set<string>();
    for (const heartbeat of heartbeats) {
      const { node, applied, unreadable, draining, listeners } = heartbeat;
      if (applied === null || unreadable !== undefined || draining) continue;
      speaking.add(node);
      // The same list until it is another.
      if (this.#lastReportByNode.get(node)?.listeners !== listeners)
        this.#lastReportByNode.set(node, { listeners, errors: errorsIn(heartbeat) });
    }
    const silent: Heartbeat[] = [];
    for (const [node, { errors }] of this.#lastReportByNode) {
      if (speaking.has(node)) continue;
      if (!entries.has(nodeId(node))) this.#lastReportByNode.delete(node);
      else if (errors !== undefined) silent.push(errors);
    }
    return silent.length === 0 ? heartbeats : [...heartbeats, ...silent];
  }
}

/** As the last life of its node, so that it counts only for what no other one speaks of. */
function errorsIn(heartbeat: Heartbeat): Heartbeat | undefined {
  const listeners = heartbeat.listeners.filter(({ error }) => error !== null);
  return listeners.length === 0 ? undefined : { ...heartbeat, life: Number.MAX_SAFE_INTEGER, listeners };
}
