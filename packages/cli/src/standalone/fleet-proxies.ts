import { entriesOf, entryIdOf, type NodeEntry, nodeId, type RoutingTable } from '@weir/model';
import type { RunningProxy } from '@weir/proxy';
import type { Logger } from '@weir/runtime';
import { followTable, type Store } from '@weir/store';
import { pollUntil } from './waiting.ts';

export interface FleetProxiesOptions {
  readonly store: Store;
  readonly start: (node: NodeEntry) => Promise<RunningProxy>;
  readonly log: Logger;
}

function isNodeId(id: string): boolean {
  return id.startsWith(nodeId(''));
}

/** Runs one proxy for each node of the routing table. Starts and stops proxies as nodes come and go. */
export class FleetProxies {
  readonly #options: FleetProxiesOptions;
  readonly #closing = new AbortController();
  readonly #failure: PromiseWithResolvers<never> = Promise.withResolvers<never>();
  readonly #proxies = new Map<string, Promise<RunningProxy | undefined>>();
  /** Pending stops of proxies whose nodes were removed. A stop may take long, because the proxy drains first. */
  readonly #stopping = new Set<Promise<void>>();
  readonly #following: Promise<void>;

  constructor(options: FleetProxiesOptions) {
    this.#options = options;
    this.#failure.promise.catch(() => {});
    this.#following = followTable(options.store.table, {
      signal: this.#closing.signal,
      onTable: (table) => this.#reconcile(table),
      onChanges: (changes, table) => {
        if (changes.some((change) => isNodeId(entryIdOf(change)))) this.#reconcile(table);
      },
    }).catch((error) => this.#failure.reject(error));
  }

  /** Rejects if a proxy fails to start or fails later. */
  get failed(): Promise<never> {
    return this.#failure.promise;
  }

  /** Drains all proxies at the same time. If a proxy fails to close, waits for the other proxies and then rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
    const closed = await Promise.allSettled([...this.#proxies.keys()].map((name) => this.#stop(name)));
    await Promise.all(this.#stopping);
    for (const result of closed) if (result.status === 'rejected') throw result.reason;
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

  /** Closes the proxy of a removed node. A failure is only logged, so that the proxies of other nodes keep running. */
  #stopInBackground(node: string): void {
    const stopping = this.#stop(node).catch((error) => {
      this.#options.log.error({ err: error, node }, 'failed to close the proxy of a removed node');
    });
    this.#stopping.add(stopping);
    void stopping.then(() => this.#stopping.delete(stopping));
  }

  async #stop(name: string): Promise<void> {
    const starting = this.#proxies.get(name);
    this.#proxies.delete(name);
    const proxy = await starting;
    await proxy?.close();
  }
}

/** Maximum wait for the listeners of all nodes. A node whose address is not on this machine never reports its listeners. */
const MAX_SERVING_WAIT_MS = 15_000;

/**
 * Waits until the proxy of every node has applied the table and has reported each of its listeners as bound or failed, but at most
 * `MAX_SERVING_WAIT_MS`. Resolves with the nodes for which this was not yet the case.
 */
export async function waitUntilServing(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  let silent: readonly string[] = [];
  const isServing = async (): Promise<boolean> => {
    const nodes = await readUnreportedNodes(store);
    silent = nodes ?? [];
    return nodes?.length === 0;
  };
  try {
    await pollUntil(isServing, { withinMs: MAX_SERVING_WAIT_MS, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return silent;
}

/** Returns the nodes whose proxy has not applied the table, or has not reported all its listeners; undefined if there is no table. */
async function readUnreportedNodes(store: Store): Promise<readonly string[] | undefined> {
  const [snapshot, heartbeats] = await Promise.all([store.table.read(), store.heartbeats.list()]);
  if (snapshot === undefined) return undefined;
  const byNode = new Map(heartbeats.map((heartbeat) => [heartbeat.node, heartbeat]));
  const listeners = Map.groupBy(entriesOf(snapshot.table, 'listener'), (listener) => listener.node);
  const hasReported = (name: string): boolean => {
    const heartbeat = byNode.get(name);
    if (heartbeat?.applied?.id !== snapshot.position.id) return false;
    const reported = new Set(
      heartbeat.listeners.filter((report) => report.bound || report.error !== null).map((report) => report.id),
    );
    return (listeners.get(name) ?? []).every((listener) => reported.has(listener.id));
  };
  return entriesOf(snapshot.table, 'node').flatMap(({ name }) => (hasReported(name) ? [] : [name]));
}
