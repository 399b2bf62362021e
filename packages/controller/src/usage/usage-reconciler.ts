import { entriesOf, type Heartbeat, type RoutingTable } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { FoldedIncarnation, HeartbeatStore, UsageStore } from '@weir/store';
import {
  createLeaderLoop,
  type LoopContext,
  logLoopFailure,
  type ReconcileLoop,
} from '../controller/reconcile-loop.ts';
import type { TableReconciler } from '../table/table-reconciler.ts';
import {
  type ArchiveOutcome,
  exhaustedMessages,
  latestOf,
  recentMonths,
  seedFor,
  type TenantUsage,
  type TrafficLevel,
  tenantsThatReachedLevel,
  tenantUsagesFor,
  trafficLevels,
  type UsageArchive,
} from './tenant-usage.ts';

const USAGE_LOOP = { gapMs: 1_000, resyncMs: 15_000, retryMs: [1_000, 10_000] } as const;

export function createUsageLoop(
  context: LoopContext,
  { usage, table }: { readonly usage: UsageReconciler; readonly table: Pick<TableReconciler, 'translation'> },
): ReconcileLoop {
  const { metrics, log } = context;
  const loop = createLeaderLoop(context, USAGE_LOOP, {
    async run() {
      const { translation } = table;
      if (translation !== undefined) await metrics.measure('ledger', () => usage.reconcile(translation.table));
    },
    onError: logLoopFailure(log, 'failed to update the usage ledger; retrying'),
  });
  return { loop, onLeadershipLost: () => usage.reset(), onStoreReady: () => loop.trigger() };
}

export interface UsageReconcilerOptions {
  readonly store: UsageStore;
  readonly heartbeats: Pick<HeartbeatStore, 'list'>;
  readonly archive?: UsageArchive | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How often what was used is written away: what a wiped store may lose of proxies that have ended meanwhile. */
const ARCHIVE_INTERVAL_MS = 5 * 60_000;
/** How soon a namespace that has its first Service is told what that is: all that was used is copied for it. */
const NEW_NAMESPACE_INTERVAL_MS = 10_000;

/** Opens the ledger of a store that is new or was wiped, with what is known; and keeps that known. */
export class UsageReconciler {
  readonly #options: UsageReconcilerOptions;
  /** The ledger as last copied, while we lead. */
  #lastUsages: readonly TenantUsage[] = [];
  #archivedAt = Number.NEGATIVE_INFINITY;
  #newNamespacesArchivedAt = Number.NEGATIVE_INFINITY;
  /** By namespace: what the archive holds, without the time. */
  readonly #archivedTextByNamespace = new Map<string, string>();
  /** Namespaces of which something was said, or that was refused. */
  readonly #knownNamespaces = new Set<string>();
  readonly #refusals: ArchiveRefusalLog;
  /** Of each tenant that has a limit: the last that was written away. */
  #levels: ReadonlyMap<string, TrafficLevel> = new Map();
  #exhausted: ReadonlyMap<string, string> = new Map();

  constructor(options: UsageReconcilerOptions) {
    this.#options = options;
    this.#refusals = new ArchiveRefusalLog(options.log);
  }

  /** What to say to tenants that have used up their month, by tenant. */
  get exhausted(): ReadonlyMap<string, string> {
    return this.#exhausted;
  }

  /** Somebody else may have led and counted on: what we remember is old. */
  reset(): void {
    this.#lastUsages = [];
    this.#archivedAt = Number.NEGATIVE_INFINITY;
    this.#archivedTextByNamespace.clear();
    this.#knownNamespaces.clear();
    this.#refusals.reset();
  }

  /** Rejects when the store or the archive is away; then come again. */
  async reconcile(table: RoutingTable): Promise<void> {
    const { store, clock } = this.#options;
    if (!(await store.isSeeded())) await this.#seed();
    const isDue = clock.monotonic() - this.#archivedAt >= ARCHIVE_INTERVAL_MS;
    const levels = await this.#levelsNow(table);
    this.#exhausted = exhaustedMessages(table, levels);
    const crossed = tenantsThatReachedLevel(this.#levels, levels);
    const isGreeting = !isDue && this.#hasNewNamespace(table);
    if (isDue || isGreeting || crossed.size > 0) {
      const copy = await store.exportSeed(recentMonths(clock.now()));
      const usages = tenantUsagesFor(copy, table, clock.now());
      // A store that was wiped in between gave an empty copy; what we knew is worth more.
      if (!(await store.isSeeded())) return;
      this.#lastUsages = usages;
      const isTold = ({ namespace, status }: TenantUsage): boolean =>
        isDue || crossed.has(status.tenant?.name ?? '') || (isGreeting && !this.#knownNamespaces.has(namespace));
      await this.#archive(usages.filter(isTold));
      if (isGreeting) this.#newNamespacesArchivedAt = clock.monotonic();
      if (isDue) {
        await this.#removeUnused(new Set(usages.map((usage) => usage.namespace)));
        await this.#fold();
      }
    }
    // Last: what could not be written is still due.
    this.#levels = levels;
    if (isDue) this.#archivedAt = clock.monotonic();
  }

  /** Whether a namespace has Services, and nothing that says what they used. */
  #hasNewNamespace(table: RoutingTable): boolean {
    const { archive, clock } = this.#options;
    if (archive === undefined || clock.monotonic() - this.#newNamespacesArchivedAt < NEW_NAMESPACE_INTERVAL_MS)
      return false;
    return entriesOf(table, 'service').some(({ namespace }) => !this.#knownNamespaces.has(namespace));
  }

  /** Else the bases of every life that there ever was would stay, in the store and in each TenantUsage. */
  async #fold(): Promise<void> {
    const { store, heartbeats, clock } = this.#options;
    for (const { node, life } of foldableIncarnations(await heartbeats.list(), clock.now()))
      await store.fold(node, life);
  }

  async #seed(): Promise<void> {
    const { store, archive, log } = this.#options;
    const usages = latestOf((await archive?.read()) ?? [], this.#lastUsages);
    const outcome = await store.seed(seedFor(usages));
    if (outcome === 'seeded')
      log.info({ namespaces: usages.length }, 'the ledger was opened with the totals that are known');
  }

  async #levelsNow(table: RoutingTable): Promise<ReadonlyMap<string, TrafficLevel>> {
    const { store, clock } = this.#options;
    const limited = entriesOf(table, 'tenant').filter(({ limits }) => limits.trafficPerMonth !== undefined);
    const [month] = recentMonths(clock.now());
    const rows = (await Promise.all(limited.map(({ name }) => store.rows(month, name)))).flat();
    return trafficLevels(table, rows);
  }

  async #archive(usages: readonly TenantUsage[]): Promise<void> {
    const { archive } = this.#options;
    if (archive === undefined) return;
    for (const usage of usages) {
      const { updatedAt: _, ...said } = usage.status;
      const text = JSON.stringify(said);
      if (this.#archivedTextByNamespace.get(usage.namespace) === text) continue;
      const archived = await archive.write(usage);
      this.#knownNamespaces.add(usage.namespace);
      this.#refusals.record(usage.namespace, archived);
      // A refused one comes again when all are due, whether or not it says something new by then.
      if (archived.kind !== 'refused') this.#archivedTextByNamespace.set(usage.namespace, text);
    }
    this.#refusals.log();
  }

  /** Of namespaces that have no Services any more, and used nothing in the months that are kept. */
  async #removeUnused(present: ReadonlySet<string>): Promise<void> {
    const { archive } = this.#options;
    this.#refusals.keepOnly(present);
    for (const { namespace } of (await archive?.read()) ?? []) {
      if (present.has(namespace)) continue;
      await archive?.remove(namespace);
      this.#archivedTextByNamespace.delete(namespace);
      this.#knownNamespaces.delete(namespace);
    }
  }
}

/**
 * Whoever serves a node so long has long brought home what earlier lives of it left in the state directory. Until then each
 * life keeps its bases, without which a repeated report would be billed twice.
 */
const MIN_SERVED_MS = 24 * 3_600_000;

/**
 * By node, the last life whose account can be closed with all before it: those below every life that is heard, once all that
 * are heard have served for a day, as far as they are understood. `now` in milliseconds since the epoch.
 */
export function foldableIncarnations(heartbeats: readonly Heartbeat[], now: number): FoldedIncarnation[] {
  const byNode = Map.groupBy(heartbeats, ({ node }) => node);
  return [...byNode].flatMap(([node, lives]) => {
    const isSettled = lives.every(
      ({ startedAt, unreadable }) => unreadable === undefined && now - startedAt >= MIN_SERVED_MS,
    );
    const life = Math.min(...lives.map((heartbeat) => heartbeat.life)) - 1;
    return isSettled && life > 0 ? [{ node, life }] : [];
  });
}

/** How many namespaces a line names. */
const MAX_LOGGED_NAMESPACES = 5;

/** Of which namespaces the usage is not kept: told when there are others, and when all of it is kept again. */
export class ArchiveRefusalLog {
  readonly #log: Logger;
  /** By namespace: why. */
  readonly #reasonByNamespace = new Map<string, string>();
  #loggedNamespaces = '';

  constructor(log: Logger) {
    this.#log = log;
  }

  record(namespace: string, archived: ArchiveOutcome): void {
    if (archived.kind === 'refused') this.#reasonByNamespace.set(namespace, archived.reason);
    else this.#reasonByNamespace.delete(namespace);
  }

  keepOnly(present: ReadonlySet<string>): void {
    for (const namespace of this.#reasonByNamespace.keys())
      if (!present.has(namespace)) this.#reasonByNamespace.delete(namespace);
  }

  reset(): void {
    this.#reasonByNamespace.clear();
    this.#loggedNamespaces = '';
  }

  log(): void {
    const namespaces = [...this.#reasonByNamespace.keys()].sort();
    const text = namespaces.join();
    if (text === this.#loggedNamespaces) return;
    this.#loggedNamespaces = text;
    const [first] = namespaces;
    if (first === undefined) {
      this.#log.info('every TenantUsage can be written again');
      return;
    }
    const fields = {
      namespaces: namespaces.slice(0, MAX_LOGGED_NAMESPACES),
      refused: namespaces.length,
      reason: this.#reasonByNamespace.get(first),
    };
    this.#log.warn(
      fields,
      'TenantUsage is refused: a wiped store would lose what was used; it is tried again every 5 minutes',
    );
  }
}
