import { isDeepStrictEqual } from 'node:util';
import { type FleetSettings, type PolicyView, policyViewsFor } from '@weir/model';
import { type Clock, createLoop, type Logger, type Loop } from '@weir/runtime';
import { tellFailure } from '../control/tell-failure.ts';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import type { Leadership } from '../leader/leadership.ts';
import { fieldManagerFor } from '../status/field-manager.ts';
import { forEachOf } from '../status/for-each-of.ts';
import { StatusWriter } from '../status/status-writer.ts';
import type { Source, SourceSnapshot } from '../watch/source.ts';
import { type PolicyFacts, policyFactsFor, policyProblemsFor, policyStatusFor } from './policy-status.ts';

export interface PolicyStatusOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly settings: FleetSettings;
  readonly clock: Clock;
  readonly log: Logger;
}

const KIND = { apiVersion: 'weir.dev/v1alpha1', kind: 'TenantPolicy' } as const;
const ALL = '/apis/weir.dev/v1alpha1/tenantpolicies';
const WRITERS = 4;
/** Many namespaces are often made at once: then each policy is written once a second, not once for each. */
const LOOP = { gapMs: 1_000, resyncMs: 60_000, retryMs: [1_000, 30_000] } as const;

/**
 * Tells TenantPolicies what they come to. Beside the table and not part of it: policies and namespaces are all that it depends on, so
 * that operators see what they wrote also while the store is away.
 */
export class PolicyStatusKeeper {
  readonly #options: PolicyStatusOptions;
  readonly #writer: StatusWriter;
  /** By the key of the source. */
  readonly #facts = new Map<string, PolicyFacts>();
  /** Counts up when a policy is another than before, whoever made it so. */
  #observed = 0;
  #viewed: { readonly from: readonly unknown[]; readonly views: ReadonlyMap<string, PolicyView> } | undefined;
  /** From what everything was last written; empty: something has to be. */
  #told: readonly unknown[] = [];
  #loop: Loop | undefined;
  #stops: readonly (() => void)[] = [];

  constructor(options: PolicyStatusOptions) {
    this.#options = options;
    const fieldManager = fieldManagerFor(options.settings.loadBalancerClass);
    this.#writer = new StatusWriter({ ...options, fieldManager });
  }

  /** A policy as it came from the API server; undefined: it is gone. */
  note(key: string, raw: Json | undefined): void {
    const facts = raw === undefined ? undefined : policyFactsFor(raw);
    if (isDeepStrictEqual(this.#facts.get(key), facts)) return;
    if (facts === undefined) this.#facts.delete(key);
    else this.#facts.set(key, facts);
    this.#observed += 1;
    this.#loop?.trigger();
  }

  /** Once; the policies of the source are those that are noted. */
  start({ source, leader }: { readonly source: Source; readonly leader: Leadership }): void {
    const { clock, log } = this.#options;
    const loop = createLoop({
      ...LOOP,
      clock,
      onError: tellFailure(log, 'TenantPolicies are not told what they cover; it is tried again'),
      run: async (signal) => {
        await source.synced(signal);
        if (leader.isLeader) await this.#keep(source.snapshot(), signal);
        else this.#told = [];
      },
    });
    this.#loop = loop;
    this.#stops = [source.onChange(() => loop.trigger()), leader.onChange(() => loop.trigger())];
    loop.trigger();
  }

  /** Resolves once what was noted so far is told. */
  async idle(): Promise<void> {
    await this.#loop?.idle();
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await this.#loop?.close();
  }

  async #keep(snapshot: SourceSnapshot, signal: AbortSignal): Promise<void> {
    // Nobody knows whom they cover: what they say is better than "nobody".
    if (snapshot.unread?.has('Namespace')) return;
    const views = this.#viewsOf(snapshot);
    const noted = [...this.#facts];
    const problems = policyProblemsFor([...this.#facts.values()], snapshot.problems);
    const from = [views, this.#observed, JSON.stringify([...problems])];
    if (isSame(from, this.#told)) return;
    this.#told = [];
    const uids = new Set(noted.map(([, { uid }]) => uid));
    this.#writer.keepOnly((uid) => uids.has(uid));
    let isAllTold = true;
    await forEachOf(noted, { at: WRITERS, signal }, async ([key, facts]) => {
      const status = policyStatusFor(facts, views.get(facts.uid), problems.get(facts.name));
      if (!(await this.#tell(key, facts, status))) isAllTold = false;
    });
    if (isAllTold) this.#told = from;
  }

  /** The same map until a policy or a namespace changes. */
  #viewsOf(snapshot: SourceSnapshot): ReadonlyMap<string, PolicyView> {
    const from = [snapshot.policies, snapshot.namespaces];
    if (this.#viewed === undefined || !isSame(this.#viewed.from, from)) {
      const views = policyViewsFor({ ...snapshot, settings: this.#options.settings });
      this.#viewed = { from, views: new Map(views.map((view) => [view.uid, view])) };
    }
    return this.#viewed.views;
  }

  /** False: to be looked at again. One that changed meanwhile is noted as it is now, and that brings the next run. */
  async #tell(key: string, facts: PolicyFacts, status: Json): Promise<boolean> {
    if (facts.deleting || isDeepStrictEqual(status, facts.status)) return true;
    const target = { ...KIND, ...facts, path: `${ALL}/${facts.name}` };
    const outcome = await this.#writer.write(target, { status, words: JSON.stringify(status) });
    // Not if the watch was faster.
    if (outcome.kind === 'written' && this.#facts.get(key)?.resourceVersion === facts.resourceVersion)
      this.note(key, outcome.object);
    return outcome.kind === 'written';
  }
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}
