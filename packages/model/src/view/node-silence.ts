import type { Heartbeat } from '../heartbeat.ts';

/**
 * How long the proxy of a node must be silent before its Services are reported. A proxy that restarts is usually back sooner, and each
 * report writes the status of every Service of the node.
 */
const REPORT_SILENCE_AFTER_MS = 10_000;

export interface NodeSilenceInput {
  /** The names of the nodes that should have a proxy. */
  readonly nodes: Iterable<string>;
  /** The last heartbeats of the proxies that count as alive. */
  readonly heartbeats: readonly Pick<Heartbeat, 'node'>[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Tracks since when each node has had no live proxy. Call `update` only while the store is reachable. */
export class NodeSilence {
  readonly #sinceByNode: Map<string, number>;
  #reported: ReadonlyMap<string, number> = new Map();

  /** `known` contains, by node, since when a node has been silent, for the nodes whose silence is known before the first update. */
  constructor(known: ReadonlyMap<string, number> = new Map()) {
    this.#sinceByNode = new Map(known);
  }

  /**
   * By node, since when the node has had no live proxy (milliseconds since the epoch), for nodes that have had none for
   * `REPORT_SILENCE_AFTER_MS`. The map is the same object until its content changes.
   */
  get silentSince(): ReadonlyMap<string, number> {
    return this.#reported;
  }

  update({ nodes, heartbeats, now }: NodeSilenceInput): ReadonlyMap<string, number> {
    const heard = new Set(heartbeats.map(({ node }) => node));
    const silent = new Set([...nodes].filter((name) => !heard.has(name)));
    for (const name of this.#sinceByNode.keys()) if (!silent.has(name)) this.#sinceByNode.delete(name);
    for (const name of silent) if (!this.#sinceByNode.has(name)) this.#sinceByNode.set(name, now);
    const reported = [...this.#sinceByNode].filter(([, since]) => now - since >= REPORT_SILENCE_AFTER_MS);
    const isUnchanged =
      reported.length === this.#reported.size && reported.every(([name, since]) => this.#reported.get(name) === since);
    if (!isUnchanged) this.#reported = new Map(reported);
    return this.#reported;
  }
}
