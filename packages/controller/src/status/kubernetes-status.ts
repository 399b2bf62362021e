import { isDeepStrictEqual } from 'node:util';
import { type ServiceView, withForeignController } from '@weir/model';
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
  lastForeignManager,
  type ObservedService,
  observedServiceFor,
  statusTargetFor,
} from './service-status.ts';
import { StatusDisputes } from './status-disputes.ts';
import { type DesiredViews, STATUS_RECHECK_MS, type StatusSink } from './status-sink.ts';
import { fieldManagerFor, type StatusWriteOutcome, StatusWriter } from './status-writer.ts';

export interface KubernetesStatusOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly events: EventWriter;
  /** The load balancer class of this fleet; default `DEFAULT_FLEET_SETTINGS.loadBalancerClass`. */
  readonly loadBalancerClass?: string;
  /** Whether served Services get the cleanup finalizer of Kubernetes; default false. */
  readonly cleanupFinalizer?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How many Services may be updated at the same time. The API server takes about 10 ms for a write. */
const MAX_CONCURRENT_WRITES = 8;
const EMPTY_STATUS: DesiredStatus = { ingress: [], conditions: [] };

interface UpdateResult {
  /**
   * `current`: nothing is left to do until the Service or its view changes. `pending`: the Service must be checked again later,
   * because the API server refused the status or an Event may become due. `conflict`: the Service changed during the write. `failed`:
   * only the write of this Service failed.
   */
  readonly kind: 'current' | 'pending' | 'conflict' | 'failed';
  /** The version of the Service that the update took into account. Undefined if the status of the Service is no longer observed. */
  readonly service: ObservedService | undefined;
}

/**
 * Writes the status and Events of Services by server-side apply. Writes only Weir's conditions and the addresses, and only if they
 * have changed.
 */
export class KubernetesStatus implements StatusSink {
  readonly #options: KubernetesStatusOptions;
  /** The observed Services. All keys in this class are keys of the source. */
  readonly #serviceByKey = new Map<string, ObservedService>();
  readonly #keyByUid = new Map<string, string>();
  readonly #pendingUpdates = new PendingUpdates();
  /** Since when each pending Service has been pending, in milliseconds of the monotonic clock. */
  readonly #pendingSinceByKey = new Map<string, number>();
  readonly #fieldManager: string;
  /** The field managers of this fleet. */
  readonly #ownManagers: readonly string[];
  readonly #writer: StatusWriter;
  readonly #finalizer: CleanupFinalizer;
  readonly #disputes = new StatusDisputes();
  readonly #views = new ServiceViewIndex();
  /** Undefined while no `write` is under way. */
  #run: ConcurrentRun | undefined;
  #desiredKind: DesiredViews['kind'] = 'undecided';
  #observedRevision = 0;
  #cleanedUpAt = Number.NEGATIVE_INFINITY;

  constructor(options: KubernetesStatusOptions) {
    this.#options = options;
    this.#fieldManager = fieldManagerFor(options.loadBalancerClass);
    this.#ownManagers = [this.#fieldManager, fieldManagerFor(options.loadBalancerClass, 'finalizer')];
    this.#writer = new StatusWriter({ ...options, fieldManager: this.#fieldManager });
    this.#finalizer = new CleanupFinalizer({ ...options, isWanted: options.cleanupFinalizer === true });
  }

  get observedRevision(): number {
    return this.#observedRevision;
  }

  /** Records a Service as received from the API server. `raw` is undefined if the Service was deleted. */
  observe(key: string, raw: Json | undefined): void {
    const before = this.#serviceByKey.get(key);
    const service = raw === undefined ? undefined : observedServiceFor(raw);
    if (before !== undefined && before.uid !== service?.uid) {
      this.#pendingSinceByKey.delete(key);
      if (this.#keyByUid.get(before.uid) === key) this.#keyByUid.delete(before.uid);
    }
    if (service === undefined) {
      this.#serviceByKey.delete(key);
      this.#pendingUpdates.remove(key);
    } else {
      this.#serviceByKey.set(key, service);
      this.#keyByUid.set(service.uid, key);
      this.#pendingUpdates.add(key);
    }
    if (!isDeepStrictEqual(statusFieldsOf(before), statusFieldsOf(service))) this.#observedRevision += 1;
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
    let hasConflict = false;
    this.#run = runConcurrently(
      () => this.#pendingUpdates.next(),
      { concurrency: MAX_CONCURRENT_WRITES, signal },
      async (key) => {
        const kind = await this.#updateOne(key, now);
        if (kind === 'conflict') hasConflict = true;
      },
    );
    await this.#run.done.finally(() => {
      this.#run = undefined;
    });
    return hasConflict || this.#pendingUpdates.hasFailed ? 'recheck' : 'complete';
  }

  /** Updates the status and Events of one Service. If the Service or its view changes during the update, the Service stays pending. */
  async #updateOne(key: string, now: number): Promise<UpdateResult['kind']> {
    const service = this.#serviceByKey.get(key);
    const view = service && this.#views.get(service.uid);
    let result: UpdateResult = { kind: 'current', service };
    try {
      if (service !== undefined) result = await this.#update(key, service, view);
    } catch (error) {
      if (this.#serviceByKey.has(key)) this.#pendingUpdates.interrupted(key);
      else this.#pendingUpdates.complete(key, { isCurrent: true });
      throw error;
    }
    if (result.kind === 'conflict') {
      this.#pendingUpdates.conflicted(key);
      return result.kind;
    }
    if (result.kind === 'failed' && this.#serviceByKey.has(key)) {
      this.#pendingUpdates.failed(key, now);
      return result.kind;
    }
    const latest = this.#serviceByKey.get(key);
    const isCurrent = latest === result.service && (latest && this.#views.get(latest.uid)) === view;
    this.#pendingUpdates.complete(key, { isCurrent });
    if (result.kind === 'pending' && latest !== undefined)
      this.#pendingUpdates.scheduleAt(key, now + STATUS_RECHECK_MS);
    return result.kind;
  }

  async #update(key: string, service: ObservedService, view: ServiceView | undefined): Promise<UpdateResult> {
    if (this.#desiredKind === 'decided') {
      const finalizer = await this.#finalizer.reconcile(service, { isServed: view !== undefined });
      if (finalizer?.kind === 'conflict' || finalizer?.kind === 'failed') return { kind: finalizer.kind, service };
      if (finalizer?.kind === 'written') {
        this.#resultOf(key, service, finalizer);
        // Returns the old version of the Service on purpose, so that the Service stays pending and its status is written in this pass.
        return { kind: 'current', service };
      }
      return view === undefined ? this.#clearStatus(key, service) : this.#writeView(key, service, view);
    }
    return view !== undefined && hasNoStatus(service, this.#fieldManager)
      ? this.#writeView(key, service, view)
      : { kind: 'current', service };
  }

  /** Forgets Services that do not exist any more. The cleanup only frees memory, so it does not run on every write. */
  #cleanUp(now: number): void {
    if (now - this.#cleanedUpAt < STATUS_RECHECK_MS) return;
    this.#cleanedUpAt = now;
    this.#options.events.keepOnly((uid) => this.#views.get(uid) !== undefined);
    for (const each of [this.#writer, this.#finalizer, this.#disputes]) each.keepOnly((uid) => this.#keyByUid.has(uid));
  }

  async #writeView(key: string, service: ObservedService, view: ServiceView): Promise<UpdateResult> {
    if (service.type !== 'LoadBalancer' || service.deleting) return { kind: 'current', service };
    const { uid } = service;
    const now = this.#options.clock.monotonic();
    if (!this.#isShown(service, view, now)) {
      const manager = lastForeignManager(service, this.#ownManagers);
      this.#disputes.recordDifference(uid, view, { manager, now });
    }
    const permitted = this.#disputes.permittedWrite(uid, view, now);
    if (permitted === 'nothing') return { kind: 'pending', service };
    const reported = this.#reportedView(view, now);
    const desired = desiredStatusFor(reported, service, this.#options.clock.now());
    const isOurs = service.ingressManagers.includes(this.#fieldManager);
    const status = permitted === 'conditions' && !isOurs ? { ...desired, ingress: [] } : desired;
    const newEvents = newEventsFor(reported, service);
    const result: UpdateResult = isStatusCurrent(status, service, this.#fieldManager)
      ? { kind: 'current', service }
      : await this.#apply(key, service, status);
    if (result.kind === 'conflict' || result.kind === 'failed') return result;
    if (result.kind === 'current') this.#disputes.recordShown(uid, view, { isOverwritten: status !== desired });
    const persistentEvents = persistentEventsFor(reported, this.#pendingMs(key, view));
    const eventOutcome = await this.#options.events.write({
      newEvents,
      persistentEvents,
      currentEvents: () => eventsFor(reported),
    });
    const isRecheckDue =
      persistentEvents.length > 0 || view.state === 'Pending' || reported !== view || eventOutcome === 'retry-pending';
    return isRecheckDue ? { ...result, kind: 'pending' } : result;
  }

  /** Whether the Service shows the status for the view. */
  #isShown(service: ObservedService, view: ServiceView, now: number): boolean {
    const status = desiredStatusFor(this.#reportedView(view, now), service, this.#options.clock.now());
    return isStatusCurrent(status, service, this.#fieldManager);
  }

  /** Returns the view, and adds the controller with which this controller is in dispute about the status. */
  #reportedView(view: ServiceView, now: number): ServiceView {
    const opponent = this.#disputes.opponentOf(view.uid, now);
    return opponent === undefined ? view : withForeignController(view, opponent);
  }

  #pendingMs(key: string, { state }: ServiceView): number {
    const now = this.#options.clock.monotonic();
    const since = state === 'Pending' ? (this.#pendingSinceByKey.get(key) ?? now) : undefined;
    if (since === undefined) this.#pendingSinceByKey.delete(key);
    else this.#pendingSinceByKey.set(key, since);
    return now - (since ?? now);
  }

  async #clearStatus(key: string, service: ObservedService): Promise<UpdateResult> {
    return hasStaleStatus(service, this.#fieldManager)
      ? this.#apply(key, service, EMPTY_STATUS)
      : { kind: 'current', service };
  }

  async #apply(key: string, service: ObservedService, status: DesiredStatus): Promise<UpdateResult> {
    const outcome = await this.#writer.write(statusTargetFor(service), {
      status: statusJson(status),
      fingerprint: fingerprintOf(status),
    });
    return this.#resultOf(key, service, outcome);
  }

  #resultOf(key: string, service: ObservedService, outcome: StatusWriteOutcome): UpdateResult {
    if (outcome.kind === 'conflict' || outcome.kind === 'failed') return { kind: outcome.kind, service };
    if (outcome.kind !== 'written') return { kind: 'pending', service };
    // The watch may deliver our write before the response arrives. Then the cached Service is already the written version or a newer
    // version.
    if (this.#serviceByKey.get(key)?.resourceVersion !== service.resourceVersion) return { kind: 'current', service };
    this.observe(key, outcome.object);
    return { kind: 'current', service: this.#serviceByKey.get(key) };
  }
}

/**
 * Whether the Service has no status of this fleet. A status that only says that the fleet is unreachable does not count, and neither do
 * addresses of other field managers than `fieldManager`.
 */
function hasNoStatus({ ingress, ingressManagers, conditions }: ObservedService, fieldManager: string): boolean {
  const hasAddress = ingress.length > 0 && ingressManagers.includes(fieldManager);
  return !hasAddress && conditions.every(({ status }) => status === 'Unknown');
}

function statusFieldsOf(service: ObservedService | undefined): unknown {
  if (service === undefined) return undefined;
  const { uid, type, deleting, finalizerManagers, ingress, conditions } = service;
  return [uid, type, deleting, finalizerManagers, ingress, conditions];
}

/** Returns the status as text without the transition times, because a condition that was never written gets the time of each attempt. */
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

/** Finds the views of a list by UID. An update skips the views before the first change and after the last change. */
class ServiceViewIndex {
  #list: readonly ServiceView[] = [];
  readonly #byUid = new Map<string, ServiceView>();

  get(uid: string): ServiceView | undefined {
    return this.#byUid.get(uid);
  }

  /**
   * Replaces the list. The new list must have the same order as the old list. Returns the UIDs of views that changed, are new, or are
   * gone.
   */
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
