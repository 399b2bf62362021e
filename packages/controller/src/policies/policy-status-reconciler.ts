import { isDeepStrictEqual } from 'node:util';
import {
  type FleetSettings,
  type PolicyView,
  type Problem,
  policyViewsFor,
  subjectFor,
  truncateMessage,
} from '@weir/model';
import { type Clock, createLoop, type Logger, type Loop } from '@weir/runtime';
import { logLoopFailure } from '../controller/reconcile-loop.ts';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import type { Json, KubeApi } from '../kubernetes/kube-api.ts';
import type { Leadership } from '../leader/leadership.ts';
import { areSameItems } from '../status/status-reconciler.ts';
import { fieldManagerFor, StatusWriter } from '../status/status-writer.ts';
import type { Source, SourceSnapshot } from '../watch/source.ts';

export interface PolicyStatusReconcilerOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly settings: FleetSettings;
  readonly clock: Clock;
  readonly log: Logger;
}

const TENANT_POLICY_KIND = { apiVersion: 'weir.dev/v1alpha1', kind: 'TenantPolicy' } as const;
const TENANT_POLICIES_PATH = '/apis/weir.dev/v1alpha1/tenantpolicies';
const MAX_CONCURRENT_WRITES = 4;
/** Many namespaces are often made at once: then each policy is written once a second, not once for each. */
const POLICY_STATUS_LOOP = { gapMs: 1_000, resyncMs: 60_000, retryMs: [1_000, 30_000] } as const;

/**
 * Tells TenantPolicies what they come to. Beside the table and not part of it: policies and namespaces are all that it depends on, so
 * that operators see what they wrote also while the store is away.
 */
export class PolicyStatusReconciler {
  readonly #options: PolicyStatusReconcilerOptions;
  readonly #writer: StatusWriter;
  /** By the key of the source. */
  readonly #policyByKey = new Map<string, ObservedPolicy>();
  /** Counts up when a policy is another than before, whoever made it so. */
  #observedRevision = 0;
  #cachedViews: { readonly from: readonly unknown[]; readonly views: ReadonlyMap<string, PolicyView> } | undefined;
  /** From what everything was last written; empty: something has to be. */
  #writtenFrom: readonly unknown[] = [];
  #loop: Loop | undefined;
  #unsubscribers: readonly (() => void)[] = [];

  constructor(options: PolicyStatusReconcilerOptions) {
    this.#options = options;
    const fieldManager = fieldManagerFor(options.settings.loadBalancerClass);
    this.#writer = new StatusWriter({ ...options, fieldManager });
  }

  /** A policy as it came from the API server; undefined: it is gone. */
  observe(key: string, raw: Json | undefined): void {
    const facts = raw === undefined ? undefined : observedPolicyFor(raw);
    if (isDeepStrictEqual(this.#policyByKey.get(key), facts)) return;
    if (facts === undefined) this.#policyByKey.delete(key);
    else this.#policyByKey.set(key, facts);
    this.#observedRevision += 1;
    this.#loop?.trigger();
  }

  /** Once; the policies of the source are those that are noted. */
  start({ source, leader }: { readonly source: Source; readonly leader: Leadership }): void {
    const { clock, log } = this.#options;
    const loop = createLoop({
      ...POLICY_STATUS_LOOP,
      clock,
      onError: logLoopFailure(log, 'TenantPolicies are not told what they cover; it is tried again'),
      run: async (signal) => {
        await source.synced(signal);
        if (leader.isLeader) await this.#reconcile(source.snapshot(), signal);
        else this.#writtenFrom = [];
      },
    });
    this.#loop = loop;
    this.#unsubscribers = [source.onChange(() => loop.trigger()), leader.onChange(() => loop.trigger())];
    loop.trigger();
  }

  /** Resolves once what was noted so far is told. */
  async idle(): Promise<void> {
    await this.#loop?.idle();
  }

  async close(): Promise<void> {
    for (const stop of this.#unsubscribers) stop();
    await this.#loop?.close();
  }

  async #reconcile(snapshot: SourceSnapshot, signal: AbortSignal): Promise<void> {
    // Nobody knows whom they cover: what they say is better than "nobody".
    if (snapshot.unreadableKinds?.has('Namespace')) return;
    const views = this.#viewsOf(snapshot);
    const noted = [...this.#policyByKey];
    const problems = policyProblemsFor([...this.#policyByKey.values()], snapshot.problems);
    const from = [views, this.#observedRevision, JSON.stringify([...problems])];
    if (areSameItems(from, this.#writtenFrom)) return;
    this.#writtenFrom = [];
    const uids = new Set(noted.map(([, { uid }]) => uid));
    this.#writer.keepOnly((uid) => uids.has(uid));
    let isAllTold = true;
    await forEachConcurrently(noted, { concurrency: MAX_CONCURRENT_WRITES, signal }, async ([key, facts]) => {
      const status = policyStatusFor(facts, views.get(facts.uid), problems.get(facts.name));
      if (!(await this.#write(key, facts, status))) isAllTold = false;
    });
    if (isAllTold) this.#writtenFrom = from;
  }

  /** The same map until a policy or a namespace changes. */
  #viewsOf(snapshot: SourceSnapshot): ReadonlyMap<string, PolicyView> {
    const from = [snapshot.policies, snapshot.namespaces];
    if (this.#cachedViews === undefined || !areSameItems(this.#cachedViews.from, from)) {
      const views = policyViewsFor({ ...snapshot, settings: this.#options.settings });
      this.#cachedViews = { from, views: new Map(views.map((view) => [view.uid, view])) };
    }
    return this.#cachedViews.views;
  }

  /** False: to be looked at again. One that changed meanwhile is noted as it is now, and that brings the next run. */
  async #write(key: string, facts: ObservedPolicy, status: Json): Promise<boolean> {
    if (facts.deleting || isDeepStrictEqual(status, facts.status)) return true;
    const target = { ...TENANT_POLICY_KIND, ...facts, path: `${TENANT_POLICIES_PATH}/${facts.name}` };
    const outcome = await this.#writer.write(target, { status, fingerprint: JSON.stringify(status) });
    // Not if the watch was faster.
    if (outcome.kind === 'written' && this.#policyByKey.get(key)?.resourceVersion === facts.resourceVersion)
      this.observe(key, outcome.object);
    return outcome.kind === 'written';
  }
}

/** What a TenantPolicy in the cluster says now, as far as it concerns whoever writes its status. */
export interface ObservedPolicy {
  readonly uid: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly status: Json;
}

export function observedPolicyFor(raw: Json): ObservedPolicy {
  const { metadata, status } = raw as unknown as RawPolicy;
  return {
    uid: metadata.uid,
    name: metadata.name,
    resourceVersion: metadata.resourceVersion,
    generation: metadata.generation,
    deleting: metadata.deletionTimestamp !== undefined,
    status: status ?? {},
  };
}

/** It comes from an API server, which has validated it. */
interface RawPolicy {
  readonly metadata: {
    readonly uid: string;
    readonly name: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly deletionTimestamp?: string;
  };
  readonly status?: Json;
}

const MAX_STATUS_PROBLEMS = 20;

/** What is wrong with policies, by name. */
export function policyProblemsFor(
  policies: readonly { readonly name: string }[],
  problems: readonly Problem[],
): ReadonlyMap<string, readonly string[]> {
  const bySubject = Map.groupBy(problems, ({ subject }) => subject);
  const found = policies.map(({ name }) => {
    const own = bySubject.get(subjectFor('TenantPolicy', { name })) ?? [];
    return [name, own.slice(0, MAX_STATUS_PROBLEMS).map(({ message }) => truncateMessage(message))] as const;
  });
  return new Map(found.filter(([, own]) => own.length > 0));
}

/** The whole status: what is not in it goes away. Without a view the policy could never be read, and covers nothing. */
export function policyStatusFor(
  { generation }: ObservedPolicy,
  view: PolicyView | undefined,
  problems: readonly string[] = [],
): Json {
  const counts = { tenantCount: 0, namespaceCount: 0, refusedCount: 0, overriddenCount: 0 };
  const status = { observedGeneration: generation, problems, ...counts, ...(view !== undefined && countsOf(view)) };
  return Object.fromEntries(
    Object.entries(status).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  );
}

function countsOf({ uid: _uid, name: _name, ...said }: PolicyView): Omit<PolicyView, 'uid' | 'name'> {
  return said;
}
