import { entriesOf, type NodeEntry, type RoutingTable } from '@weir/model';
import type { RunningProxy } from '@weir/proxy';
import { followTable, type Store } from '@weir/store';

export interface FleetProxiesOptions {
  readonly store: Store;
  readonly start: (node: NodeEntry) => Promise<RunningProxy>;
}

/** One proxy for each node of the table, also for nodes that come and go while it runs. */
export class FleetProxies {
  readonly #options: FleetProxiesOptions;
  readonly #closing = new AbortController();
  readonly #failing: PromiseWithResolvers<never> = Promise.withResolvers<never>();
  readonly #proxies = new Map<string, Promise<RunningProxy | undefined>>();
  readonly #following: Promise<void>;

  constructor(options: FleetProxiesOptions) {
    this.#options = options;
    this.#failing.promise.catch(() => {});
    this.#following = followTable(options.store.table, {
      signal: this.#closing.signal,
      onTable: (table) => this.#keep(table),
      onChanges: (_changes, table) => this.#keep(table),
    });
  }

  /** Rejects when a proxy could not start, or cannot go on. */
  get failed(): Promise<never> {
    return this.#failing.promise;
  }

  /** Drains all of them at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
    await Promise.all([...this.#proxies.keys()].map((name) => this.#stop(name)));
  }

  #keep(table: RoutingTable): void {
    const nodes = new Map(entriesOf(table, 'node').map((node) => [node.name, node]));
    for (const name of this.#proxies.keys()) if (!nodes.has(name)) void this.#stop(name);
    for (const node of nodes.values()) if (!this.#proxies.has(node.name)) this.#start(node);
  }

  #start(node: NodeEntry): void {
    const fail = (error: unknown): undefined => {
      this.#failing.reject(error);
    };
    const starting = this.#options.start(node).then((proxy) => {
      proxy.failed.catch(fail);
      return proxy;
    });
    this.#proxies.set(node.name, starting.catch(fail));
  }

  async #stop(name: string): Promise<void> {
    const starting = this.#proxies.get(name);
    this.#proxies.delete(name);
    const proxy = await starting;
    await proxy?.close();
  }
}
