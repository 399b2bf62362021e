import { entriesOf, type NodeEntry, type RoutingTable } from '@weir/model';
import type { RunningProxy } from '@weir/proxy';
import type { Logger } from '@weir/runtime';
import { followTable, type Store } from '@weir/store';

export interface FleetProxiesOptions {
  readonly store: Store;
  readonly start: (node: NodeEntry) => Promise<RunningProxy>;
  readonly log: Logger;
}

/** One proxy for each node of the table, also for nodes that come and go while it runs. */
export class FleetProxies {
  readonly #options: FleetProxiesOptions;
  readonly #closing = new AbortController();
  readonly #failure: PromiseWithResolvers<never> = Promise.withResolvers<never>();
  readonly #proxies = new Map<string, Promise<RunningProxy | undefined>>();
  /** Of nodes that went away: they may drain for long. */
  readonly #stopping = new Set<Promise<void>>();
  readonly #following: Promise<void>;

  constructor(options: FleetProxiesOptions) {
    this.#options = options;
    this.#failure.promise.catch(() => {});
    this.#following = followTable(options.store.table, {
      signal: this.#closing.signal,
      onTable: (table) => this.#reconcile(table),
      onChanges: (_changes, table) => this.#reconcile(table),
    }).catch((error) => this.#failure.reject(error));
  }

  /** Rejects when a proxy could not start, or cannot go on. */
  get failed(): Promise<never> {
    return this.#failure.promise;
  }

  /** Drains all of them at once, and waits for all, also when one fails to close; then it rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
    const closed = await Promise.allSettled([...this.#proxies.keys()].map((name) => this.#stop(name)));
    await Promise.all(this.#stopping);
    for (const each of closed) if (each.status === 'rejected') throw each.reason;
  }

  #reconcile(table: RoutingTable): void {
    const nodes = new Map(entriesOf(table, 'node').map((node) => [node.name, node]));
    for (const name of this.#proxies.keys()) if (!nodes.has(name)) this.#stopInBackground(name);
    for (const node of nodes.values()) if (!this.#proxies.has(node.name)) this.#start(node);
  }

  #start(node: NodeEntry): void {
    const fail = (error: unknown): undefined => {
      this.#failure.reject(error);
    };
    const starting = this.#options.start(node).then((proxy) => {
      proxy.failed.catch(fail);
      return proxy;
    });
    this.#proxies.set(node.name, starting.catch(fail));
  }

  /** That one node does not end well is no reason to end the others. */
  #stopInBackground(node: string): void {
    const leaving = this.#stop(node).catch((error) => {
      this.#options.log.error({ err: error, node }, 'the proxy of a node that is gone failed to close');
    });
    this.#stopping.add(leaving);
    void leaving.then(() => this.#stopping.delete(leaving));
  }

  async #stop(name: string): Promise<void> {
    const starting = this.#proxies.get(name);
    this.#proxies.delete(name);
    const proxy = await starting;
    await proxy?.close();
  }
}
