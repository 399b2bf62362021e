import {
  entriesOf,
  type Heartbeat,
  type RoutingTable,
  type TrafficLevel,
  type UsageNotices,
  type UsageRow,
} from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { HeartbeatStore, Incarnation, LeaseStore, UsageStore } from '@weir/store';
import {
  createLeaderLoop,
  type LoopContext,
  logLoopFailure,
  type ReconcileLoop,
} from '../controller/reconcile-loop.ts';
import type { TableReconciler } from '../table/table-reconciler.ts';
import {
  type ArchiveOutcome,
  recentMonths,
  seedFor,
  type TenantUsage,
  tenantsThatReachedLevel,
  tenantUsagesFor,
  type UsageArchive,
} from './tenant-usage.ts';
import { trustedUsage, type UsageOwnership } from './trusted-usage.ts';
import { UsageNoticeWatch } from './usage-notices.ts';
import { bytesOf, limitSize, MAX_TENANT_USAGE_BYTES } from './usage-size.ts';

const USAGE_LOOP = { gapMs: 1_000, resyncMs: 15_000, retryMs: [1_000, 10_000] } as const;

export function createUsageLoop(
  context: LoopContext,
  { usage, table }: { readonly usage: UsageReconciler; readonly table: Pick<TableReconciler, 'translation'> },
): ReconcileLoop {
  const { metrics, log } = context;
  const loop = createLeaderLoop(context, USAGE_LOOP, {
    async run() {
      const { translation } = table;
      if (translation === undefined) return;
      await metrics.measure('ledger', () => usage.reconcile(translation.table));
      if (usage.awaitsReports) loop.trigger();
    },
    onError: logLoopFailure(log, 'failed to update the usage ledger; retrying'),
  });
  return { loop, onLeadershipLost: () => usage.reset(), onStoreReady: () => loop.trigger() };
}

export interface UsageReconcilerOptions {
  readonly store: UsageStore;
  readonly leases: Pick<LeaseStore, 'openConnections'>;
  readonly heartbeats: Pick<HeartbeatStore, 'list'>;
  readonly archive?: UsageArchive | undefined;
  /** Returns a function that finds the present tenant of a namespace. Called before the ledger is seeded with archived usage. */
  readonly readTenants: () => UsageOwnership['tenantOf'];
  readonly clock: Clock;
  readonly log: Logger;
  /** Called in each round with the usage of this month of all tenants with a limit `trafficPerMonth`. */
  readonly onUsage?: (table: RoutingTable, rows: readonly UsageRow[]) => void;
}

/**
 * How often usage is archived. A wiped store loses at most the usage since the last archiving, and only for proxies that have ended
 * since then.
 */
const ARCHIVE_INTERVAL_MS = 5 * 60_000;
/**
 * How long a due round waits until every running proxy has reported in full. Afterwards the TenantUsages are written anyway and say that
 * they are partial, because a proxy may hang, or its version may not send full reports.
 */
const MAX_REPORT_WAIT_MS = 60_000;
/** The shortest time between two rounds that write TenantUsages for new namespaces, because each round exports the complete ledger. */
const NEW_NAMESPACE_INTERVAL_MS = 10_000;

/** The shortest time between two folds of Services and nodes that are gone, because a fold reads the Services of all tenants and months. */
const FOLD_GONE_INTERVAL_MS = 3_600_000;

/** Seeds the ledger of a new or wiped store with the archived usage, and writes the usage of the ledger to the archive. */
export class UsageReconciler {
  readonly #options: UsageReconcilerOptions;
  /** The usages as last exported from the store in this term. */
  #lastUsages: readonly TenantUsage[] = [];
  #archivedAt = Number.NEGATIVE_INFINITY;
  #newNamespacesArchivedAt = Number.NEGATIVE_INFINITY;
  /** Since when a due round waits for full reports, in milliseconds of the monotonic clock; undefined if no round waits. */
  #waitingSince: number | undefined;
  /** Whether the last due round wrote partial TenantUsages. */
  #isArchivePartial = false;
  #goneFoldedAt = Number.NEGATIVE_INFINITY;
  /** The usage in the archive by namespace, as JSON without `updatedAt`. */
  readonly #archivedTextByNamespace = new Map<string, string>();
  /** The namespaces for which a write was attempted. */
  readonly #attemptedNamespaces = new Set<string>();
  readonly #refusals: ArchiveRefusalLog;
  /** The traffic levels at the end of the last successful `reconcile`, by tenant. */
  #levels: ReadonlyMap<string, TrafficLevel> = new Map();
  readonly #noticeWatch: UsageNoticeWatch;

  constructor(options: UsageReconcilerOptions) {
    this.#options = options;
    this.#refusals = new ArchiveRefusalLog(options.log);
    this.#noticeWatch = new UsageNoticeWatch(options);
  }

  /** What the ledger says about tenants and Services. */
  get notices(): UsageNotices {
    return this.#noticeWatch.notices;
  }

  /** Whether a due round waits for reports of the proxies, so that `reconcile` should run again soon. */
  get awaitsReports(): boolean {
    return this.#waitingSince !== undefined && !this.#hasWaited();
  }

  /** Forgets the archived usage. Must be called when leadership is lost, because another controller may then archive newer usage. */
  reset(): void {
    this.#lastUsages = [];
    this.#archivedAt = Number.NEGATIVE_INFINITY;
    this.#waitingSince = undefined;
    this.#isArchivePartial = false;
    this.#archivedTextByNamespace.clear();
    this.#attemptedNamespaces.clear();
    this.#refusals.reset();
  }

  /**
   * Seeds the ledger of a new or wiped store, and archives the usage that is due. Rejects if the store or the archive is unreachable;
   * then call `reconcile` again.
   */
  async reconcile(table: RoutingTable): Promise<void> {
    const { store, clock } = this.#options;
    if (!(await store.isSeeded())) await this.#seed(table);
    const isIntervalOver = clock.monotonic() - this.#archivedAt >= ARCHIVE_INTERVAL_MS;
    const levels = await this.#noticeWatch.update(table);
    const reached = tenantsThatReachedLevel(this.#levels, levels);
    const hasNewNamespace = !isIntervalOver && this.#hasNewNamespace(table);
    const isCandidate = isIntervalOver || this.#isArchivePartial || hasNewNamespace || reached.size > 0;
    const isPartial = isCandidate && (await this.#isLedgerPartial());
    const isDue = isPartial ? isIntervalOver && this.#hasWaited() : isIntervalOver || this.#isArchivePartial;
    if (isDue || hasNewNamespace || reached.size > 0) {
      const ledger = await store.exportSeed(recentMonths(clock.now()));
      const usages = tenantUsagesFor(ledger, table, { now: clock.now(), isPartial });
      // If the store was wiped before the export, the export is empty and must not replace `#lastUsages`.
      if (!(await store.isSeeded())) return;
      this.#lastUsages = usages;
      const isToArchive = ({ namespace, status }: TenantUsage): boolean =>
        isDue ||
        reached.has(status.tenant?.name ?? '') ||
        (hasNewNamespace && !this.#attemptedNamespaces.has(namespace));
      const existing = new Set(entriesOf(table, 'service').map(({ uid }) => uid));
      await this.#archive(usages.filter(isToArchive).map((usage) => limitSize(usage, existing)));
      if (hasNewNamespace) this.#newNamespacesArchivedAt = clock.monotonic();
      if (isDue) {
        await this.#removeUnused(new Set(usages.map((usage) => usage.namespace)));
        // After a fold, proxies cannot report again what a wiped store has lost.
        if (!isPartial) await this.#fold(table, existing);
      }
    }
    // Recorded only at the end, so that the usage is still due after a failed write.
    this.#levels = levels;
    if (!isDue) return;
    this.#archivedAt = clock.monotonic();
    this.#isArchivePartial = isPartial;
  }

  /**
   * Whether the ledger may lack usage that a running proxy has counted. A ledger that was seeded lacks the usage since the archived copy
   * until the proxies have reported in full.
   */
  async #isLedgerPartial(): Promise<boolean> {
    const { store, heartbeats, clock } = this.#options;
    const [running, reported] = await Promise.all([heartbeats.list(), store.reportedInFull()]);
    const isReported = ({ node, life }: Incarnation): boolean =>
      reported.some((other) => other.node === node && other.life === life);
    const isPartial = !running.every(isReported);
    this.#waitingSince = isPartial ? (this.#waitingSince ?? clock.monotonic()) : undefined;
    return isPartial;
  }

  #hasWaited(): boolean {
    const { clock } = this.#options;
    return this.#waitingSince !== undefined && clock.monotonic() - this.#waitingSince >= MAX_REPORT_WAIT_MS;
  }

  /**
   * Whether any namespace has Services but no TenantUsage yet. Returns false within `NEW_NAMESPACE_INTERVAL_MS` of the last round for
   * new namespaces.
   */
  #hasNewNamespace(table: RoutingTable): boolean {
    const { archive, clock } = this.#options;
    if (archive === undefined || clock.monotonic() - this.#newNamespacesArchivedAt < NEW_NAMESPACE_INTERVAL_MS)
      return false;
    return entriesOf(table, 'service').some(({ namespace }) => !this.#attemptedNamespaces.has(namespace));
  }

  /**
   * Folds ended incarnations: the store deletes their bases and refuses their later reports. Also folds Services and nodes that are gone.
   * Otherwise the bases of every incarnation and the rows of every Service would stay in the store forever.
   */
  async #fold(table: RoutingTable, services: ReadonlySet<string>): Promise<void> {
    const { store, heartbeats, clock } = this.#options;
    const running = await heartbeats.list();
    for (const { node, life } of foldableIncarnations(running, clock.now())) await store.fold(node, life);
    if (clock.monotonic() - this.#goneFoldedAt < FOLD_GONE_INTERVAL_MS) return;
    await store.foldGoneServices(services, clock.now());
    const nodes = [...entriesOf(table, 'node').map(({ name }) => name), ...running.map(({ node }) => node)];
    await store.foldGoneNodes(new Set(nodes), clock.now());
    this.#goneFoldedAt = clock.monotonic();
  }

  /** Seeds the ledger with the usages of the last export, and for other namespaces with the archived usage that can be trusted. */
  async #seed(table: RoutingTable): Promise<void> {
    const { store, log } = this.#options;
    const exported = new Set(this.#lastUsages.map(({ namespace }) => namespace));
    const archived = (await this.#readTrustedUsages(table)).filter(({ namespace }) => !exported.has(namespace));
    const usages = [...this.#lastUsages, ...archived];
    const outcome = await store.seed(seedFor(usages));
    if (outcome === 'seeded')
      log.info({ namespaces: usages.length }, 'seeded the usage ledger with the archived usage');
  }

  async #readTrustedUsages(table: RoutingTable): Promise<readonly TenantUsage[]> {
    const { archive, readTenants, log } = this.#options;
    const archived = (await archive?.read()) ?? [];
    const namespaces = new Map(entriesOf(table, 'service').map(({ uid, namespace }) => [uid, namespace]));
    const { usages, refusedByNamespace } = trustedUsage(archived, {
      tenantOf: readTenants(),
      namespaceOf: (uid) => namespaces.get(uid),
    });
    for (const [namespace, entries] of refusedByNamespace) {
      log.warn(
        { namespace, entries },
        'a TenantUsage has usage of another tenant or namespace, which only a forged object or a former tenant of the namespace explains; ignoring this usage',
      );
    }
    return usages;
  }

  async #archive(usages: readonly TenantUsage[]): Promise<void> {
    const { archive } = this.#options;
    if (archive === undefined) return;
    for (const usage of usages) {
      const { updatedAt: _, ...content } = usage.status;
      const text = JSON.stringify(content);
      if (this.#archivedTextByNamespace.get(usage.namespace) === text) continue;
      const outcome = bytesOf(usage) > MAX_TENANT_USAGE_BYTES ? TOO_LARGE : await archive.write(usage);
      this.#attemptedNamespaces.add(usage.namespace);
      this.#refusals.record(usage.namespace, outcome);
      // A refused usage is written again at the next interval, even if it has not changed by then.
      if (outcome.kind !== 'refused') this.#archivedTextByNamespace.set(usage.namespace, text);
    }
    this.#refusals.log();
  }

  /** Removes the TenantUsages of namespaces that have no Services, and no usage in the months that are kept. */
  async #removeUnused(present: ReadonlySet<string>): Promise<void> {
    const { archive } = this.#options;
    this.#refusals.keepOnly(present);
    const archived = ((await archive?.read()) ?? []).map(({ namespace }) => namespace);
    // A TenantUsage that a person deleted is written again at the next interval.
    for (const namespace of this.#archivedTextByNamespace.keys())
      if (!archived.includes(namespace)) this.#archivedTextByNamespace.delete(namespace);
    for (const namespace of archived) {
      if (present.has(namespace)) continue;
      await archive?.remove(namespace);
      this.#archivedTextByNamespace.delete(namespace);
      this.#attemptedNamespaces.delete(namespace);
    }
  }
}

const TOO_LARGE: ArchiveOutcome = {
  kind: 'refused',
  reason: `the TenantUsage would have more than ${MAX_TENANT_USAGE_BYTES} bytes, because too many nodes have served its namespace`,
};

/**
 * How long an incarnation must run before earlier incarnations of the same node are folded. During this time the running incarnation
 * reports the usage that earlier incarnations left in the node's state directory. Usage that is reported after the fold is lost, because
 * the store refuses reports of folded incarnations.
 */
const MIN_SERVED_MS = 24 * 3_600_000;

/**
 * Returns at most one element per node: the incarnation just before the node's oldest live incarnation. The returned incarnation and all
 * earlier incarnations can be folded. A node is left out until all its live incarnations have run for a day. A node is also left out while
 * the heartbeat of one of its proxies cannot be decoded, because the start of that proxy is unknown. `now` is in milliseconds since the
 * epoch.
 */
export function foldableIncarnations(heartbeats: readonly Heartbeat[], now: number): Incarnation[] {
  const byNode = Map.groupBy(heartbeats, ({ node }) => node);
  return [...byNode].flatMap(([node, incarnations]) => {
    const isSettled = incarnations.every(
      ({ startedAt, unreadable }) => unreadable === undefined && now - startedAt >= MIN_SERVED_MS,
    );
    const life = Math.min(...incarnations.map((heartbeat) => heartbeat.life)) - 1;
    return isSettled && life > 0 ? [{ node, life }] : [];
  });
}

const MAX_LOGGED_NAMESPACES = 5;

/** Logs the namespaces whose usage the archive refuses, each time that the set of these namespaces changes. */
export class ArchiveRefusalLog {
  readonly #log: Logger;
  readonly #reasonByNamespace = new Map<string, string>();
  #loggedNamespaces = '';

  constructor(log: Logger) {
    this.#log = log;
  }

  record(namespace: string, outcome: ArchiveOutcome): void {
    if (outcome.kind === 'refused') this.#reasonByNamespace.set(namespace, outcome.reason);
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
      this.#log.info('wrote all TenantUsages that were refused before');
      return;
    }
    const fields = {
      namespaces: namespaces.slice(0, MAX_LOGGED_NAMESPACES),
      refused: namespaces.length,
      reason: this.#reasonByNamespace.get(first),
    };
    this.#log.warn(
      fields,
      'failed to write TenantUsages, so a wiped store would lose this usage; retrying every 5 minutes',
    );
  }
}
