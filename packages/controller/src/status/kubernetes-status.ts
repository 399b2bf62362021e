import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import type { EventWriter } from './event-writer.ts';
import { forEachOf } from './for-each-of.ts';
import { newsFor, standingFor } from './service-event.ts';
import { type ServiceFacts, serviceFactsFor } from './service-facts.ts';
import { isLeftover, isSaid, type ServiceStatus, statusFor } from './service-status.ts';
import type { StatusSink } from './status-sink.ts';
import { StatusWriter } from './status-writer.ts';

export interface KubernetesStatusOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly events: EventWriter;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Writes at once; the API server takes about 10 ms for each. */
const WRITERS = 8;
const NOTHING: ServiceStatus = { ingress: [], conditions: [] };

/** Status and Events of Services, by server-side apply: only our conditions and the addresses, and only when something changes. */
export class KubernetesStatus implements StatusSink {
  readonly #options: KubernetesStatusOptions;
  /** By the key of the source. */
  readonly #facts = new Map<string, ServiceFacts>();
  readonly #writer: StatusWriter;
  #observed = 0;

  constructor(options: KubernetesStatusOptions) {
    this.#options = options;
    this.#writer = new StatusWriter(options);
  }

  get observed(): number {
    return this.#observed;
  }

  /** A Service as it came from the API server; undefined: it is gone. */
  note(key: string, raw: Json | undefined): void {
    const before = this.#facts.get(key);
    const facts = raw === undefined ? undefined : serviceFactsFor(raw);
    if (facts === undefined) this.#facts.delete(key);
    else this.#facts.set(key, facts);
    const said = (each: ServiceFacts | undefined): unknown => each && [each.uid, each.ingress, each.conditions];
    if (!isDeepStrictEqual(said(before), said(facts))) this.#observed += 1;
  }

  async write(views: readonly ServiceView[], signal: AbortSignal): Promise<'done' | 'again'> {
    const viewOf = new Map(views.map((view) => [view.uid, view]));
    this.#options.events.keepOnly((uid) => viewOf.has(uid));
    const uids = new Set([...this.#facts.values()].map(({ uid }) => uid));
    this.#writer.keepOnly((uid) => uids.has(uid));
    let outcome: 'done' | 'again' = 'done';
    await forEachOf([...this.#facts], { at: WRITERS, signal }, async ([key, facts]) => {
      const view = viewOf.get(facts.uid);
      const isWritten = view === undefined ? await this.#clear(key, facts) : await this.#say(key, facts, view);
      if (!isWritten) outcome = 'again';
    });
    return outcome;
  }

  async #say(key: string, facts: ServiceFacts, view: ServiceView): Promise<boolean> {
    if (facts.type !== 'LoadBalancer' || facts.deleting) return true;
    const status = statusFor(view, facts, this.#options.clock.now());
    const news = newsFor(view, facts);
    if (!isSaid(status, facts) && !(await this.#apply(key, facts, status))) return false;
    await this.#options.events.tell(news, standingFor(view));
    return true;
  }

  async #clear(key: string, facts: ServiceFacts): Promise<boolean> {
    return !isLeftover(facts) || this.#apply(key, facts, NOTHING);
  }

  /** False: it changed meanwhile. */
  async #apply(key: string, facts: ServiceFacts, status: ServiceStatus): Promise<boolean> {
    const { namespace, name, resourceVersion } = facts;
    const path = `/api/v1/namespaces/${namespace}/services/${name}`;
    const target = { ...facts, apiVersion: 'v1', kind: 'Service', path };
    const outcome = await this.#writer.write(target, { status: jsonFor(status), words: wordsOf(status) });
    // Not if the watch was faster.
    if (outcome.kind === 'written' && this.#facts.get(key)?.resourceVersion === resourceVersion)
      this.note(key, outcome.object);
    return outcome.kind !== 'changed';
  }
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
