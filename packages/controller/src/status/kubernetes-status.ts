import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import { CleanupFinalizer } from './cleanup-finalizer.ts';
import type { EventWriter } from './event-writer.ts';
import { fieldManagerFor } from './field-manager.ts';
import { type Drain, drain } from './for-each-of.ts';
import { newsFor, standingFor, tellableOf } from './service-event.ts';
import { type ServiceFacts, serviceFactsFor } from './service-facts.ts';
import { isLeftover, isSaid, type ServiceStatus, statusFor } from './service-status.ts';
import { LOOK_AGAIN_MS, type StatusSink, type Wanted } from './status-sink.ts';
import { type StatusOutcome, StatusWriter } from './status-writer.ts';
import { Untold } from './untold.ts';
import { ViewsByUid } from './views.ts';

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
const WRITERS = 8;
const NOTHING: ServiceStatus = { ingress: [], conditions: [] };

interface Told {
  /** `open`: it says so, or would not, and something is to be told or tried again. `changed`: it did meanwhile. */
  readonly kind: 'settled' | 'open' | 'changed';
  /** As the Service is now, if nobody else changed it. */
  readonly facts: ServiceFacts | undefined;
}

/** Status and Events of Services, by server-side apply: only our conditions and the addresses, and only when something changes. */
export class KubernetesStatus implements StatusSink {
  readonly #options: KubernetesStatusOptions;
  /** By the key of the source. */
  readonly #facts = new Map<string, ServiceFacts>();
  /** By UID, the key of the source. */
  readonly #keyOf = new Map<string, string>();
  readonly #untold = new Untold();
  /** By the key of the source: since when it waits for its address, on a clock that never jumps. */
  readonly #pending = new Map<string, number>();
  readonly #fieldManager: string;
  readonly #writer: StatusWriter;
  readonly #finalizer: CleanupFinalizer;
  readonly #views = new ViewsByUid();
  /** While it is being written. */
  #writing: Drain | undefined;
  #kind: Wanted['kind'] = 'undecided';
  #observed = 0;
  #forgotAt = Number.NEGATIVE_INFINITY;

  constructor(options: KubernetesStatusOptions) {
    this.#options = options;
    this.#fieldManager = fieldManagerFor(options.loadBalancerClass);
    this.#writer = new StatusWriter({ ...options, fieldManager: this.#fieldManager });
    this.#finalizer = new CleanupFinalizer({ ...options, isWanted: options.cleanupFinalizer === true });
  }

  get observed(): number {
    return this.#observed;
  }

  /** A Service as it came from the API server; undefined: it is gone. */
  note(key: string, raw: Json | undefined): void {
    const before = this.#facts.get(key);
    const facts = raw === undefined ? undefined : serviceFactsFor(raw);
    if (before !== undefined && before.uid !== facts?.uid) {
      this.#pending.delete(key);
      if (this.#keyOf.get(before.uid) === key) this.#keyOf.delete(before.uid);
    }
    if (facts === undefined) {
      this.#facts.delete(key);
      this.#untold.forget(key);
    } else {
      this.#facts.set(key, facts);
      this.#keyOf.set(facts.uid, key);
      this.#untold.open(key);
    }
    if (!isDeepStrictEqual(said(before), said(facts))) this.#observed += 1;
  }

  want({ kind, views }: Wanted): void {
    for (const uid of this.#views.take(views)) {
      const key = this.#keyOf.get(uid);
      if (key !== undefined) this.#untold.open(key);
    }
    if (kind !== this.#kind) {
      this.#kind = kind;
      for (const key of this.#facts.keys()) this.#untold.open(key);
    }
    this.#writing?.more();
  }

  async write(signal: AbortSignal): Promise<'done' | 'again'> {
    const now = this.#options.clock.monotonic();
    this.#forget(now);
    this.#untold.begin(now);
    let outcome: 'done' | 'again' = 'done';
    this.#writing = drain(
      () => this.#untold.next(),
      { at: WRITERS, signal },
      async (key) => {
        const kind = await this.#tellOne(key, now);
        if (kind === 'changed') outcome = 'again';
      },
    );
    await this.#writing.done.finally(() => {
      this.#writing = undefined;
    });
    return outcome;
  }

  /** Whatever is wanted meanwhile is told after it. */
  async #tellOne(key: string, now: number): Promise<Told['kind']> {
    const facts = this.#facts.get(key);
    const view = facts && this.#views.get(facts.uid);
    let told: Told = { kind: 'settled', facts };
    try {
      if (facts !== undefined) told = await this.#tell(key, facts, view);
    } catch (error) {
      if (this.#facts.has(key)) this.#untold.failed(key);
      else this.#untold.settled(key, { isStill: true });
      throw error;
    }
    if (told.kind === 'changed') {
      this.#untold.changed(key);
      return told.kind;
    }
    const known = this.#facts.get(key);
    const isStill = known === told.facts && (known && this.#views.get(known.uid)) === view;
    this.#untold.settled(key, { isStill });
    if (told.kind === 'open' && known !== undefined) this.#untold.dueAt(key, now + LOOK_AGAIN_MS);
    return told.kind;
  }

  async #tell(key: string, facts: ServiceFacts, view: ServiceView | undefined): Promise<Told> {
    if (this.#kind === 'decided') {
      const held = await this.#finalizer.keep(facts, { isServed: view !== undefined });
      if (held?.kind === 'changed') return { kind: 'changed', facts };
      if (held?.kind === 'written') {
        this.#outcome(key, facts, held);
        // Not what was told: as it is now it comes again in this turn.
        return { kind: 'settled', facts };
      }
      return view === undefined ? this.#clear(key, facts) : this.#say(key, facts, view);
    }
    return view !== undefined && saysNothing(facts) ? this.#say(key, facts, view) : { kind: 'settled', facts };
  }

  /** What is remembered of Services that are gone; now and then, for it only takes room. */
  #forget(now: number): void {
    if (now - this.#forgotAt < LOOK_AGAIN_MS) return;
    this.#forgotAt = now;
    this.#options.events.keepOnly((uid) => this.#views.get(uid) !== undefined);
    for (const each of [this.#writer, this.#finalizer]) each.keepOnly((uid) => this.#keyOf.has(uid));
  }

  async #say(key: string, facts: ServiceFacts, view: ServiceView): Promise<Told> {
    if (facts.type !== 'LoadBalancer' || facts.deleting) return { kind: 'settled', facts };
    const status = statusFor(view, facts, this.#options.clock.now());
    const news = newsFor(view, facts);
    const told: Told = isSaid(status, facts) ? { kind: 'settled', facts } : await this.#apply(key, facts, status);
    if (told.kind === 'changed') return told;
    const standing = standingFor(view, this.#pendingMs(key, view));
    const heard = await this.#options.events.tell({ news, standing, still: () => tellableOf(view) });
    return standing.length > 0 || view.state === 'Pending' || heard === 'owing' ? { ...told, kind: 'open' } : told;
  }

  #pendingMs(key: string, { state }: ServiceView): number {
    const now = this.#options.clock.monotonic();
    const since = state === 'Pending' ? (this.#pending.get(key) ?? now) : undefined;
    if (since === undefined) this.#pending.delete(key);
    else this.#pending.set(key, since);
    return now - (since ?? now);
  }

  async #clear(key: string, facts: ServiceFacts): Promise<Told> {
    return isLeftover(facts, this.#fieldManager) ? this.#apply(key, facts, NOTHING) : { kind: 'settled', facts };
  }

  async #apply(key: string, facts: ServiceFacts, status: ServiceStatus): Promise<Told> {
    const { namespace, name } = facts;
    const path = `/api/v1/namespaces/${namespace}/services/${name}`;
    const target = { ...facts, apiVersion: 'v1', kind: 'Service', path };
    const outcome = await this.#writer.write(target, { status: jsonFor(status), words: wordsOf(status) });
    return this.#outcome(key, facts, outcome);
  }

  #outcome(key: string, facts: ServiceFacts, outcome: StatusOutcome): Told {
    if (outcome.kind === 'changed') return { kind: 'changed', facts };
    if (outcome.kind !== 'written') return { kind: 'open', facts };
    // Not if the watch was faster.
    if (this.#facts.get(key)?.resourceVersion !== facts.resourceVersion) return { kind: 'settled', facts };
    this.note(key, outcome.object);
    return { kind: 'settled', facts: this.#facts.get(key) };
  }
}

/** But that nothing is known. */
function saysNothing({ ingress, conditions }: ServiceFacts): boolean {
  return ingress.length === 0 && conditions.every(({ status }) => status === 'Unknown');
}

function said(facts: ServiceFacts | undefined): unknown {
  return facts && [facts.uid, facts.type, facts.deleting, facts.heldBy, facts.ingress, facts.conditions];
}

/** Without the times: those of a condition that was never taken are always now. */
function wordsOf({ ingress, conditions }: ServiceStatus): string {
  return JSON.stringify([
    ingress,
    conditions.map(({ type, status, reason, message }) => [type, status, reason, message]),
  ]);
}

function jsonFor({ ingress, conditions }: ServiceStatus): Json {
  return {
    ...(ingress.length > 0 && { loadBalancer: { ingress } }),
    ...(conditions.length > 0 && { conditions }),
  };
}
