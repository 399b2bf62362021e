import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import type { EventWriter } from './event-writer.ts';
import { fieldManagerFor } from './field-manager.ts';
import { forEachOf } from './for-each-of.ts';
import { newsFor, standingFor } from './service-event.ts';
import { type ServiceFacts, serviceFactsFor } from './service-facts.ts';
import { isLeftover, isSaid, type ServiceStatus, statusFor } from './service-status.ts';
import type { StatusSink } from './status-sink.ts';
import { StatusWriter } from './status-writer.ts';

export interface KubernetesStatusOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly events: EventWriter;
  /** Of this fleet; that of the default where it is absent. */
  readonly loadBalancerClass?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Writes at once; the API server takes about 10 ms for each. */
const WRITERS = 8;
/** What is told again (why a Service is refused, or pending) or tried again (a refused write) is looked at so often. */
const LOOK_AGAIN_MS = 30_000;
const NOTHING: ServiceStatus = { ingress: [], conditions: [] };

/** A Service that was told what its view says; while neither changes it is left alone. */
interface Settled {
  readonly facts: ServiceFacts;
  readonly view: ServiceView | undefined;
  /** On a clock that never jumps. */
  readonly until: number;
}

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
  /** By the key of the source. */
  readonly #settled = new Map<string, Settled>();
  /** By the key of the source: since when it waits for its address, on a clock that never jumps. */
  readonly #pending = new Map<string, number>();
  /** By the key of the source: those that could not be told last time. They come last, or a few would keep all others waiting. */
  readonly #failed = new Set<string>();
  readonly #fieldManager: string;
  readonly #writer: StatusWriter;
  #views: readonly ServiceView[] = [];
  #viewOf = new Map<string, ServiceView>();
  #observed = 0;
  #forgotAt = Number.NEGATIVE_INFINITY;

  constructor(options: KubernetesStatusOptions) {
    this.#options = options;
    this.#fieldManager = fieldManagerFor(options.loadBalancerClass);
    this.#writer = new StatusWriter({ ...options, fieldManager: this.#fieldManager });
  }

  get observed(): number {
    return this.#observed;
  }

  /** A Service as it came from the API server; undefined: it is gone. */
  note(key: string, raw: Json | undefined): void {
    const before = this.#facts.get(key);
    const facts = raw === undefined ? undefined : serviceFactsFor(raw);
    if (facts === undefined) {
      this.#facts.delete(key);
      this.#settled.delete(key);
      this.#pending.delete(key);
      this.#failed.delete(key);
    } else {
      this.#facts.set(key, facts);
    }
    if (!isDeepStrictEqual(said(before), said(facts))) this.#observed += 1;
  }

  async write(views: readonly ServiceView[], signal: AbortSignal): Promise<'done' | 'again'> {
    const viewOf = this.#byUid(views);
    const now = this.#options.clock.monotonic();
    this.#forget((uid) => viewOf.has(uid), now);
    const open: [string, ServiceFacts][] = [];
    for (const [key, facts] of this.#facts)
      if (!this.#isSettled(key, facts, viewOf.get(facts.uid), now)) open.push([key, facts]);
    let outcome: 'done' | 'again' = 'done';
    await forEachOf(this.#failedLast(open), { at: WRITERS, signal }, async ([key, facts]) => {
      const view = viewOf.get(facts.uid);
      this.#failed.add(key);
      const told = await (view === undefined ? this.#clear(key, facts) : this.#say(key, facts, view));
      this.#failed.delete(key);
      if (told.kind === 'changed') outcome = 'again';
      else if (told.facts !== undefined && this.#facts.has(key)) {
        const until = told.kind === 'open' ? now + LOOK_AGAIN_MS : Number.POSITIVE_INFINITY;
        this.#settled.set(key, { facts: told.facts, view, until });
      }
    });
    return outcome;
  }

  async writeUndecided(views: readonly ServiceView[], signal: AbortSignal): Promise<void> {
    const viewOf = this.#byUid(views);
    const unknown = [...this.#facts].filter(([, facts]) => saysNothing(facts) && viewOf.has(facts.uid));
    await forEachOf(this.#failedLast(unknown), { at: WRITERS, signal }, async ([key, facts]) => {
      const view = viewOf.get(facts.uid);
      this.#failed.add(key);
      if (view !== undefined) await this.#say(key, facts, view);
      this.#failed.delete(key);
    });
  }

  #failedLast(all: readonly [string, ServiceFacts][]): readonly [string, ServiceFacts][] {
    return this.#failed.size === 0
      ? all
      : [...all].sort(([a], [b]) => Number(this.#failed.has(a)) - Number(this.#failed.has(b)));
  }

  /** Lists in which few views are others come one after the other, and often the same again. */
  #byUid(views: readonly ServiceView[]): ReadonlyMap<string, ServiceView> {
    if (views === this.#views) return this.#viewOf;
    this.#views = views;
    this.#viewOf = new Map();
    for (const view of views) this.#viewOf.set(view.uid, view);
    return this.#viewOf;
  }

  /** What is remembered of Services that are gone; now and then, for it only takes room. */
  #forget(isTold: (uid: string) => boolean, now: number): void {
    if (now - this.#forgotAt < LOOK_AGAIN_MS) return;
    this.#forgotAt = now;
    this.#options.events.keepOnly(isTold);
    const uids = new Set([...this.#facts.values()].map(({ uid }) => uid));
    this.#writer.keepOnly((uid) => uids.has(uid));
  }

  // One that the watch told us of since is not: its facts are others.
  #isSettled(key: string, facts: ServiceFacts, view: ServiceView | undefined, now: number): boolean {
    const settled = this.#settled.get(key);
    return settled !== undefined && settled.facts === facts && settled.view === view && now < settled.until;
  }

  async #say(key: string, facts: ServiceFacts, view: ServiceView): Promise<Told> {
    if (facts.type !== 'LoadBalancer' || facts.deleting) return { kind: 'settled', facts };
    const status = statusFor(view, facts, this.#options.clock.now());
    const news = newsFor(view, facts);
    const told: Told = isSaid(status, facts) ? { kind: 'settled', facts } : await this.#apply(key, facts, status);
    if (told.kind === 'changed') return told;
    const standing = standingFor(view, this.#pendingMs(key, view));
    await this.#options.events.tell(news, standing);
    return standing.length > 0 || view.state === 'Pending' ? { ...told, kind: 'open' } : told;
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
    const { namespace, name, resourceVersion } = facts;
    const path = `/api/v1/namespaces/${namespace}/services/${name}`;
    const target = { ...facts, apiVersion: 'v1', kind: 'Service', path };
    const outcome = await this.#writer.write(target, { status: jsonFor(status), words: wordsOf(status) });
    if (outcome.kind === 'changed') return { kind: 'changed', facts };
    if (outcome.kind !== 'written') return { kind: 'open', facts };
    // Not if the watch was faster.
    if (this.#facts.get(key)?.resourceVersion !== resourceVersion) return { kind: 'settled', facts };
    this.note(key, outcome.object);
    return { kind: 'settled', facts: this.#facts.get(key) };
  }
}

/** But that nothing is known. */
function saysNothing({ ingress, conditions }: ServiceFacts): boolean {
  return ingress.length === 0 && conditions.every(({ status }) => status === 'Unknown');
}

function said(facts: ServiceFacts | undefined): unknown {
  return facts && [facts.uid, facts.type, facts.deleting, facts.ingress, facts.conditions];
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
