import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import { type ConcurrentRun, runConcurrently } from '../kubernetes/concurrent-calls.ts';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import { CleanupFinalizer } from './cleanup-finalizer.ts';
import type { EventWriter } from './event-writer.ts';
import { eventsFor, newEventsFor, persistentEventsFor } from './event-writer.ts';
import { PendingUpdates } from './pending-updates.ts';
import {
  type DesiredStatus,
  desiredStatusFor,
  hasStaleStatus,
  isStatusCurrent,
  type ObservedService,
  observedServiceFor,
} from './service-status.ts';
import { type DesiredViews, STATUS_RECHECK_MS, type StatusSink } from './status-sink.ts';
import { fieldManagerFor, type StatusWriteOutcome, StatusWriter } from './status-writer.ts';

export interface KubernetesStatusOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly events: EventWriter;
  /** Of this fleet; that of the default where it is absent. */
  readonly loadBalancerClass?: string;
  /** Services that are served have the finalizer of Kubernetes for load balancers; default false. */
  readonly cleanupFinalizer?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Writes at once; the API server takes about 10 ms for each. */
const MAX_CONCURRENT_WRITES = 8;
const EMPTY_STATUS: DesiredStatus = { ingress: [], conditions: [] };

interface UpdateResult {
  /** `open`: it says so, or would not, and something is to be told or tried again. `changed`: it did meanwhile. */
  readonly kind: 'settled' | 'open' | 'changed';
  /** As the Service is now, if nobody else changed it. */
  readonly facts: ObservedService | undefined;
}

/** Status and Events of Services, by server-side apply: only our conditions and the addresses, and only when something changes. */
export class KubernetesStatus implements StatusSink {
  readonly #options: KubernetesStatusOptions;
  /** By the key of the source. */
  readonly #serviceByKey = new Map<string, ObservedService>();
  /** By UID, the key of the source. */
  readonly #keyByUid = new Map<string, string>();
  readonly #pendingUpdates = new PendingUpdates();
  /** By the key of the source: since when it waits for its address, on a clock that never jumps. */
  readonly #pendingSinceByKey = new Map<string, number>();
  readonly #fieldManager: string;
  readonly #writer: StatusWriter;
  readonly #finalizer: CleanupFinalizer;
  readonly #views = new ServiceViewIndex();
  /** While it is being written. */
  #run: ConcurrentRun | undefined;
  #desiredKind: DesiredViews['kind'] = 'undecided';
  #observedRevision = 0;
  #cleanedUpAt = Number.NEGATIVE_INFINITY;

  constructor(options: KubernetesStatusOptions) {
    this.#options = options;
    this.#fieldManager = fieldManagerFor(options.loadBalancerClass);
    this.#writer = new StatusWriter({ ...options, fieldManager: this.#fieldManager });
    this.#finalizer = new CleanupFinalizer({ ...options, isWanted: options.cleanupFinalizer === true });
  }

  get observedRevision(): number {
    return this.#observedRevision;
  }

  /** A Service as it came from the API server; undefined: it is gone. */
  observe(key: string, raw: Json | undefined): void {
    const before = this.#serviceByKey.get(key);
    const facts = raw === undefined ? undefined : observedServiceFor(raw);
    if (before !== undefined && before.uid !== facts?.uid) {
      this.#pendingSinceByKey.delete(key);
      if (this.#keyByUid.get(before.uid) === key) this.#keyByUid.delete(before.uid);
    }
    if (facts === undefined) {
      this.#serviceByKey.delete(key);
      this.#pendingUpdates.remove(key);
    } else {
      this.#serviceByKey.set(key, facts);
      this.#keyByUid.set(facts.uid, key);
      this.#pendingUpdates.add(key);
    }
    if (!isDeepStrictEqual(statusFieldsOf(before), statusFieldsOf(facts))) this.#observedRevision += 1;
  }

  setDesired({ kind, views }: DesiredViews): void {
    for (const uid of this.#views.update(views)) {
      const key = this.#keyByUid.get(uid);
      if (key !== undefined) this.#pendingUpdates.add(key);
    }
    if (kind !== this.#desiredKind) {
      this.#desiredKind = kind;
      for (const key of this.#serviceByKey.keys()) this.#pendingUpdates.add(key);
    }
    this.#run?.wake();
  }

  async write(signal: AbortSignal): Promise<'complete' | 'recheck'> {
    const now = this.#options.clock.monotonic();
    this.#cleanUp(now);
    this.#pendingUpdates.startPass(now);
    let outcome: 'complete' | 'recheck' = 'complete';
    this.#run = runConcurrently(
      () => this.#pendingUpdates.next(),
      { concurrency: MAX_CONCURRENT_WRITES, signal },
      async (key) => {
        const kind = await this.#updateOne(key, now);
        if (kind === 'changed') outcome = 'recheck';
      },
    );
    await this.#run.done.finally(() => {
      this.#run = undefined;
    });
    return outcome;
  }

  /** Whatever is wanted meanwhile is told after it. */
  async #updateOne(key: string, now: number): Promise<UpdateResult['kind']> {
    const facts = this.#serviceByKey.get(key);
    const view = facts && this.#views.get(facts.uid);
    let told: UpdateResult = { kind: 'settled', facts };
    try {
      if (facts !== undefined) told = await this.#update(key, facts, view);
    } catch (error) {
      if (this.#serviceByKey.has(key)) this.#pendingUpdates.failed(key);
      else this.#pendingUpdates.complete(key, { isStill: true });
      throw error;
    }
    if (told.kind === 'changed') {
      this.#pendingUpdates.conflicted(key);
      return told.kind;
    }
    const known = this.#serviceByKey.get(key);
    const isStill = known === told.facts && (known && this.#views.get(known.uid)) === view;
    this.#pendingUpdates.complete(key, { isStill });
    if (told.kind === 'open' && known !== undefined) this.#pendingUpdates.scheduleAt(key, now + STATUS_RECHECK_MS);
    return told.kind;
  }

  async #update(key: string, facts: ObservedService, view: ServiceView | undefined): Promise<UpdateResult> {
    if (this.#desiredKind === 'decided') {
      const held = await this.#finalizer.reconcile(facts, { isServed: view !== undefined });
      if (held?.kind === 'changed') return { kind: 'changed', facts };
      if (held?.kind === 'written') {
        this.#resultOf(key, facts, held);
        // Not what was told: as it is now it comes again in this turn.
        return { kind: 'settled', facts };
      }
      return view === undefined ? this.#clearStatus(key, facts) : this.#writeView(key, facts, view);
    }
    return view !== undefined && hasNoStatus(facts) ? this.#writeView(key, facts, view) : { kind: 'settled', facts };
  }

  /** What is remembered of Services that are gone; now and then, for it only takes room. */
  #cleanUp(now: number): void {
    if (now - this.#cleanedUpAt < STATUS_RECHECK_MS) return;
    this.#cleanedUpAt = now;
    this.#options.events.keepOnly((uid) => this.#views.get(uid) !== undefined);
    for (const each of [this.#writer, this.#finalizer]) each.keepOnly((uid) => this.#keyByUid.has(uid));
  }

  async #writeView(key: string, facts: ObservedService, view: ServiceView): Promise<UpdateResult> {
    if (facts.type !== 'LoadBalancer' || facts.deleting) return { kind: 'settled', facts };
    const status = desiredStatusFor(view, facts, this.#options.clock.now());
    const newEvents = newEventsFor(view, facts);
    const told: UpdateResult = isStatusCurrent(status, facts)
      ? { kind: 'settled', facts }
      : await this.#apply(key, facts, status);
    if (told.kind === 'changed') return told;
    const persistentEvents = persistentEventsFor(view, this.#pendingMs(key, view));
    const heard = await this.#options.events.write({
      newEvents,
      persistentEvents,
      currentEvents: () => eventsFor(view),
    });
    return persistentEvents.length > 0 || view.state === 'Pending' || heard === 'owing'
      ? { ...told, kind: 'open' }
      : told;
  }

  #pendingMs(key: string, { state }: ServiceView): number {
    const now = this.#options.clock.monotonic();
    const since = state === 'Pending' ? (this.#pendingSinceByKey.get(key) ?? now) : undefined;
    if (since === undefined) this.#pendingSinceByKey.delete(key);
    else this.#pendingSinceByKey.set(key, since);
    return now - (since ?? now);
  }

  async #clearStatus(key: string, facts: ObservedService): Promise<UpdateResult> {
    return hasStaleStatus(facts, this.#fieldManager)
      ? this.#apply(key, facts, EMPTY_STATUS)
      : { kind: 'settled', facts };
  }

  async #apply(key: string, facts: ObservedService, status: DesiredStatus): Promise<UpdateResult> {
    const { namespace, name } = facts;
    const path = `/api/v1/namespaces/${namespace}/services/${name}`;
    const target = { ...facts, apiVersion: 'v1', kind: 'Service', path };
    const outcome = await this.#writer.write(target, {
      status: statusJson(status),
      fingerprint: fingerprintOf(status),
    });
    return this.#resultOf(key, facts, outcome);
  }

  #resultOf(key: string, facts: ObservedService, outcome: StatusWriteOutcome): UpdateResult {
    if (outcome.kind === 'changed') return { kind: 'changed', facts };
    if (outcome.kind !== 'written') return { kind: 'open', facts };
    // Not if the watch was faster.
    if (this.#serviceByKey.get(key)?.resourceVersion !== facts.resourceVersion) return { kind: 'settled', facts };
    this.observe(key, outcome.object);
    return { kind: 'settled', facts: this.#serviceByKey.get(key) };
  }
}

/** But that nothing is known. */
function hasNoStatus({ ingress, conditions }: ObservedService): boolean {
  return ingress.length === 0 && conditions.every(({ status }) => status === 'Unknown');
}

function statusFieldsOf(facts: ObservedService | undefined): unknown {
  return facts && [facts.uid, facts.type, facts.deleting, facts.finalizerManagers, facts.ingress, facts.conditions];
}

/** Without the times: those of a condition that was never taken are always now. */
function fingerprintOf({ ingress, conditions }: DesiredStatus): string {
  return JSON.stringify([
    ingress,
    conditions.map(({ type, status, reason, message }) => [type, status, reason, message]),
  ]);
}

function statusJson({ ingress, conditions }: DesiredStatus): Json {
  return {
    ...(ingress.length > 0 && { loadBalancer: { ingress } }),
    ...(conditions.length > 0 && { conditions }),
  };
}

/** The views of a sorted list by UID; an update costs as much as the part of the list that changed. */
class ServiceViewIndex {
  #list: readonly ServiceView[] = [];
  readonly #byUid = new Map<string, ServiceView>();

  get(uid: string): ServiceView | undefined {
    return this.#byUid.get(uid);
  }

  /** Takes a list in the same order as the list before. Returns the UIDs whose view changed or is gone. */
  update(list: readonly ServiceView[]): ReadonlySet<string> {
    const changed = new Set<string>();
    if (list === this.#list) return changed;
    const before = this.#list;
    this.#list = list;
    const maxShared = Math.min(before.length, list.length);
    let from = 0;
    while (from < maxShared && before[from] === list[from]) from += 1;
    let tail = 0;
    while (tail < maxShared - from && before[before.length - 1 - tail] === list[list.length - 1 - tail]) tail += 1;
    const present = new Set<string>();
    for (const view of list.slice(from, list.length - tail)) {
      present.add(view.uid);
      if (this.#byUid.get(view.uid) === view) continue;
      this.#byUid.set(view.uid, view);
      changed.add(view.uid);
    }
    for (const { uid } of before.slice(from, before.length - tail))
      if (!present.has(uid) && this.#byUid.delete(uid)) changed.add(uid);
    return changed;
  }
}
