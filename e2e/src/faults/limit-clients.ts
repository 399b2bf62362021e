// Clients of two tenants that want more than their fleet-wide limits allow, and the check that the proxies together admit neither more
// than the limit nor nothing.
import { setTimeout } from 'node:timers/promises';
import { connectClient } from '@weir/testkit';
import { NODES, type NodeName, nodeAddress } from '../addresses.ts';
import type { CutTime } from './steady-clients.ts';

/** The limit `connections` of the tenant `few`. */
export const CONNECTION_LIMIT = 12;
export const CONNECTION_LIMIT_PORT = 7011;
/** The limit `newConnectionsPerSecond` of the tenant `rate`. */
export const RATE_LIMIT = 60;
export const RATE_LIMIT_PORT = 7012;

const HOLDERS_PER_NODE = 6;
const HOLD_MS = 2_000;
const RETRY_PAUSE_MS = 200;
const ATTEMPTS_PER_NODE_AND_SECOND = 30;
const MAX_OPEN_ATTEMPTS_PER_NODE = 60;
const ANSWER_TIMEOUT_MS = 60_000;

/**
 * Times of `performance.now()` of an admitted connection. The proxy has admitted the connection at some time after `start` and before
 * `confirmed`, and the connection was certainly open from `confirmed` to `end`. So a client that runs late never reports too much.
 */
export interface AdmittedConnection {
  readonly node: NodeName;
  readonly start: number;
  readonly confirmed: number;
  end: number;
}

export class LimitClients {
  readonly held: AdmittedConnection[] = [];
  readonly rated: AdmittedConnection[] = [];
  readonly startedAt: number = performance.now();
  readonly #running: Promise<void>[];
  readonly #cuts: CutTime[] = [];
  #isStopping = false;

  constructor() {
    const holders = NODES.flatMap((node) => Array.from({ length: HOLDERS_PER_NODE }, () => this.#hold(node)));
    this.#running = [...holders, ...NODES.map((node) => this.#connectOften(node))];
  }

  /** The connections of a killed proxy end with the fault, and not when their clients notice this. */
  cut(cut: CutTime): void {
    this.#cuts.push(cut);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    for (const connection of this.held) {
      for (const { node, from } of this.#cuts) {
        if (connection.node === node && connection.confirmed < from && from < connection.end) connection.end = from;
      }
    }
  }

  async #hold(node: NodeName): Promise<void> {
    while (!this.#isStopping) {
      const start = performance.now();
      try {
        await using client = await connectClient({
          host: nodeAddress(node),
          port: CONNECTION_LIMIT_PORT,
          timeoutMs: ANSWER_TIMEOUT_MS,
        });
        await client.send('x');
        await client.take(1);
        const connection = { node, start, confirmed: performance.now(), end: Number.POSITIVE_INFINITY };
        this.held.push(connection);
        await Promise.race([setTimeout(HOLD_MS), client.ended]);
        connection.end = performance.now();
      } catch {
        // The proxy has refused the connection, or has ended.
        await setTimeout(RETRY_PAUSE_MS);
      }
    }
  }

  async #connectOften(node: NodeName): Promise<void> {
    const open = new Set<Promise<void>>();
    while (!this.#isStopping) {
      if (open.size < MAX_OPEN_ATTEMPTS_PER_NODE) {
        const attempt = this.#connectOnce(node).finally(() => open.delete(attempt));
        open.add(attempt);
      }
      await setTimeout(1_000 / ATTEMPTS_PER_NODE_AND_SECOND);
    }
    await Promise.all(open);
  }

  async #connectOnce(node: NodeName): Promise<void> {
    const start = performance.now();
    try {
      await using client = await connectClient({
        host: nodeAddress(node),
        port: RATE_LIMIT_PORT,
        timeoutMs: ANSWER_TIMEOUT_MS,
      });
      await client.send('x');
      await client.take(1);
      const confirmed = performance.now();
      this.rated.push({ node, start, confirmed, end: confirmed });
    } catch {
      // The proxy has refused the connection, or has ended.
    }
  }
}

/** Returns the maximum number of connections that were certainly open at the same time. */
export function maxOpenConnections(connections: readonly AdmittedConnection[]): number {
  const changes = connections.flatMap(({ confirmed, end }) => [
    [confirmed, 1] as const,
    [Math.max(confirmed, end), -1] as const,
  ]);
  changes.sort(([a, up], [b, down]) => a - b || up - down);
  let open = 0;
  let max = 0;
  for (const [, change] of changes) {
    open += change;
    max = Math.max(max, open);
  }
  return max;
}

/** Returns the maximum number of connections that the proxies have certainly admitted within a window of this length. */
export function maxAdmittedWithin(connections: readonly AdmittedConnection[], windowMs: number): number {
  const byStart = connections.toSorted((a, b) => a.start - b.start);
  let max = 0;
  for (const [index, { start: from }] of byStart.entries()) {
    let admitted = 0;
    for (let next = index; next < byStart.length; next += 1) {
      const connection = byStart[next];
      if (connection === undefined || connection.start >= from + windowMs) break;
      if (connection.confirmed <= from + windowMs) admitted += 1;
    }
    max = Math.max(max, admitted);
  }
  return max;
}

/** Returns the longest time in milliseconds in which no connection was admitted. */
export function longestTimeWithoutAdmission(
  connections: readonly AdmittedConnection[],
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const times = connections.map(({ confirmed }) => confirmed).filter((time) => time > from);
  times.sort((a, b) => a - b);
  let last = from;
  let longest = 0;
  for (const time of [...times, to]) {
    longest = Math.max(longest, time - last);
    last = time;
  }
  return longest;
}
