import { availableParallelism } from 'node:os';
import { entriesOf, type NodeEntry, type RoutingTable } from '@weir/model';
import { type RunningProxy, startProxy } from '@weir/proxy';
import { type Clock, type Logger, type Secret, systemClock, wait } from '@weir/runtime';
import { followTable, type Store } from '@weir/store';
import { version } from '../version.ts';

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

export interface NodeProxyOptions {
  /** Two proxies of one fleet and node on this machine would serve the same: the second one waits. */
  readonly fleet: string;
  readonly node: string;
  readonly store: Store;
  /** What private keys are sealed with; undefined: none can be opened. */
  readonly fleetSecret: Secret | undefined;
  readonly workers: number | undefined;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly state: string | undefined;
  /** Somebody asked for a drain on its local socket. */
  readonly onDrain: () => void;
  readonly log: Logger;
  readonly clock: Clock;
}

/** The proxy of one node in this process. */
export function startNodeProxy(options: NodeProxyOptions): Promise<RunningProxy> {
  const { workers = availableParallelism(), state, log, ...same } = options;
  return startProxy({
    ...same,
    workers,
    stateDirectory: state,
    log: log.child({ part: 'proxy' }),
    version: version(),
  });
}

const SERVING_POLL_INTERVAL_MS = 20;
/** Then it is ready with what it has: a node whose address is not here never answers. */
const MAX_SERVING_WAIT_MS = 5_000;

/** Resolves once every node's proxy has the table and has said of each of its listeners whether it could be bound. */
export async function waitUntilServing(store: Store, signal: AbortSignal): Promise<void> {
  const until = systemClock.monotonic() + MAX_SERVING_WAIT_MS;
  while (!signal.aborted && systemClock.monotonic() < until) {
    if (await areAllListenersReported(store)) return;
    await wait(systemClock, SERVING_POLL_INTERVAL_MS, signal).catch(() => {});
  }
}

async function areAllListenersReported(store: Store): Promise<boolean> {
  const [copy, heartbeats] = await Promise.all([store.table.read(), store.heartbeats.list()]);
  if (copy === undefined) return false;
  const byNode = new Map(heartbeats.map((heartbeat) => [heartbeat.node, heartbeat]));
  const listeners = Map.groupBy(entriesOf(copy.table, 'listener'), (listener) => listener.node);
  return entriesOf(copy.table, 'node').every(({ name }) => {
    const heartbeat = byNode.get(name);
    if (heartbeat?.applied?.id !== copy.position.id) return false;
    const answered = new Set(
      heartbeat.listeners.filter((report) => report.bound || report.error !== null).map((report) => report.id),
    );
    return (listeners.get(name) ?? []).every((listener) => answered.has(listener.id));
  });
}
