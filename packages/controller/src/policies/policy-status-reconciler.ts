import { isDeepStrictEqual } from 'node:util';
import {
  type FleetSettings,
  type PolicyView,
  type Problem,
  policyViewsFor,
  subjectFor,
  timestampOf,
  truncateMessage,
} from '@weir/model';
import { type Clock, type Logger, Loop } from '@weir/runtime';
import { logLoopFailure } from '../controller/reconcile-loop.ts';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import { type Json, type KubeApi, WEIR_API_PATH, WEIR_API_VERSION } from '../kubernetes/kube-api.ts';
import type { Leadership } from '../leader/leadership.ts';
import { areSameItems } from '../status/status-reconciler.ts';
import { fieldManagerFor, type StatusTarget, StatusWriter } from '../status/status-writer.ts';
import type { Source, SourceSnapshot } from '../watch/source.ts';

export interface PolicyStatusReconcilerOptions {
  readonly api: Pick<KubeApi, 'request'>;
  readonly settings: FleetSettings;
  readonly clock: Clock;
  readonly log: Logger;
}

const TENANT_POLICY_KIND = { apiVersion: WEIR_API_VERSION, kind: 'TenantPolicy' } as const;
const TENANT_POLICIES_PATH = `${WEIR_API_PATH}/tenantpolicies`;
const MAX_CONCURRENT_WRITES = 4;
/**
 * The intervals of the loop that writes policy status. `gapMs` merges changes: if many namespaces are created at once, each policy is
 * written at most once a second.
 */
const POLICY_STATUS_LOOP = { gapMs: 1_000, resyncMs: 60_000, retryMs: [1_000, 30_000] } as const;

/**
 * Writes the status of TenantPolicies: which tenants and namespaces each policy covers, and which problems the policy has. Needs
 * neither the table nor the store, so that operators see the effect of their policies even while the store is unreachable.
 */
export class PolicyStatusReconciler {
  readonly #options: PolicyStatusReconcilerOptions;
  readonly #writer: StatusWriter;
  /** The policies by the key of the source. */
  readonly #policyByKey = new Map<string, ObservedPolicy>();
  /** Increases whenever any client changes a policy. */
  #observedRevision = 0;
  #cachedViews: { readonly inputs: readonly unknown[]; readonly views: ReadonlyMap<string, PolicyView> } | undefined;
  /** The inputs of the last run after which every policy showed its status; empty if a write is due. */
  #writtenInputs: readonly unknown[] = [];
  #loop: Loop | undefined;
  #unsubscribers: readonly (() => void)[] = [];

  constructor(options: PolicyStatusReconcilerOptions) {
    this.#options = options;
    const fieldManager = fieldManagerFor(options.settings.loadBalancerClass);
    this.#writer = new StatusWriter({ ...options, fieldManager });
  }

  /** Records a policy as received from the API server. `raw` is undefined if the policy was deleted. */
  observe(key: string, raw: Json | undefined): void {
    const policy = raw === undefined ? undefined : observedPolicyFor(raw);
    if (isDeepStrictEqual(this.#policyByKey.get(key), policy)) return;
    if (policy === undefined) this.#policyByKey.delete(key);
    else this.#policyByKey.set(key, policy);
    this.#observedRevision += 1;
    this.#loop?.trigger();
  }

  /** Starts the loop; call this only once. `observe` must receive the policies of `source`. */
  start({ source, leader }: { readonly source: Source; readonly leader: Leadership }): void {
    const { clock, log } = this.#options;
    const loop = new Loop({
      ...POLICY_STATUS_LOOP,
      clock,
      onError: logLoopFailure(log, 'failed to update TenantPolicy status; retrying'),
      run: async (signal) => {
        await source.synced(signal);
        if (leader.isLeader) await this.#reconcile(source.snapshot(), signal);
        else this.#writtenInputs = [];
      },
    });
    this.#loop = loop;
    this.#unsubscribers = [source.onChange(() => loop.trigger()), leader.onChange(() => loop.trigger())];
    loop.trigger();
  }

  /** Resolves once the status of every policy observed so far is written. */
  async idle(): Promise<void> {
    await this.#loop?.idle();
  }

  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribers) unsubscribe();
    await this.#loop?.close();
  }

  async #reconcile(snapshot: SourceSnapshot, signal: AbortSignal): Promise<void> {
    // Without the namespaces a policy would seem to cover no tenant, so its last status stays.
    if (snapshot.unreadableKinds?.has('Namespace')) return;
    const views = this.#viewsOf(snapshot);
    const policies = [...this.#policyByKey];
    const problems = policyProblemsFor([...this.#policyByKey.values()], snapshot.problems);
    const inputs = [views, this.#observedRevision, JSON.stringify([...problems])];
    if (areSameItems(inputs, this.#writtenInputs)) return;
    this.#writtenInputs = [];
    const uids = new Set(policies.map(([, { uid }]) => uid));
    this.#writer.keepOnly((uid) => uids.has(uid));
    let areAllCurrent = true;
    await forEachConcurrently(policies, { concurrency: MAX_CONCURRENT_WRITES, signal }, async ([key, policy]) => {
      const status = policyStatusFor(policy, {
        view: views.get(policy.uid),
        problems: problems.get(policy.name),
        now: this.#options.clock.now(),
      });
      if (!(await this.#write(key, policy, status))) areAllCurrent = false;
    });
    if (areAllCurrent) this.#writtenInputs = inputs;
  }

  /** Returns the views by policy UID. The map is the same object until a policy or a namespace changes. */
  #viewsOf(snapshot: SourceSnapshot): ReadonlyMap<string, PolicyView> {
    const inputs = [snapshot.policies, snapshot.namespaces];
    if (this.#cachedViews === undefined || !areSameItems(this.#cachedViews.inputs, inputs)) {
      const views = policyViewsFor({ ...snapshot, settings: this.#options.settings });
      this.#cachedViews = { inputs, views: new Map(views.map((view) => [view.uid, view])) };
    }
    return this.#cachedViews.views;
  }

  /**
   * Writes the status of one policy. Returns whether the policy shows the status after the write. If the policy changed during the write,
   * the watch delivers the change and triggers the next run.
   */
  async #write(key: string, policy: ObservedPolicy, status: Json): Promise<boolean> {
    if (policy.deleting || isDeepStrictEqual(status, policy.status)) return true;
    const fingerprint = JSON.stringify(status);
    const outcome = await this.#writer.write(policyStatusTargetFor(policy), { status, fingerprint });
    // The watch may deliver our write before the response arrives. Then the cached policy is already the written version or a newer
    // version.
    if (outcome.kind === 'written' && this.#policyByKey.get(key)?.resourceVersion === policy.resourceVersion)
      this.observe(key, outcome.object);
    return outcome.kind === 'written';
  }
}

/** The fields of a TenantPolicy in the cluster that matter for its status. */
export interface ObservedPolicy {
  readonly uid: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly hasRules: boolean;
  readonly status: Json;
}

export function observedPolicyFor(raw: Json): ObservedPolicy {
  const { metadata, spec, status } = raw as unknown as RawPolicy;
  return {
    uid: metadata.uid,
    name: metadata.name,
    resourceVersion: metadata.resourceVersion,
    generation: metadata.generation,
    deleting: metadata.deletionTimestamp !== undefined,
    hasRules: (spec?.rules ?? []).length > 0,
    status: status ?? {},
  };
}

/** Returns the target of a write to the policy's status. */
export function policyStatusTargetFor({ uid, name, resourceVersion }: ObservedPolicy): StatusTarget {
  return { ...TENANT_POLICY_KIND, uid, name, resourceVersion, path: `${TENANT_POLICIES_PATH}/${name}` };
}

/** The fields of a TenantPolicy that this file reads. The API server has validated them. */
interface RawPolicy {
  readonly metadata: {
    readonly uid: string;
    readonly name: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly deletionTimestamp?: string;
  };
  readonly spec?: { readonly rules?: readonly unknown[] };
  readonly status?: Json;
}

const MAX_STATUS_PROBLEMS = 20;

interface PolicyProblems {
  readonly messages: readonly string[];
  /** The messages about rules that do not act. */
  readonly ofRules: readonly string[];
}

/** Returns the problems of each policy, by name of the policy. Policies without problems are absent. */
export function policyProblemsFor(
  policies: readonly { readonly name: string }[],
  problems: readonly Problem[],
): ReadonlyMap<string, PolicyProblems> {
  const bySubject = Map.groupBy(problems, ({ subject }) => subject);
  const found = policies.map(({ name }) => {
    const own = (bySubject.get(subjectFor('TenantPolicy', { name })) ?? []).slice(0, MAX_STATUS_PROBLEMS);
    const messages = own.map(({ message }) => truncateMessage(message));
    return [name, { messages, ofRules: messages.filter((_, index) => own[index]?.code === 'InvalidRule') }] as const;
  });
  return new Map(found.filter(([, { messages }]) => messages.length > 0));
}

const NO_PROBLEMS: PolicyProblems = { messages: [], ofRules: [] };

/**
 * Returns the complete status, because the write removes absent fields. A policy that was never valid has no view and covers no tenant.
 * `now` is in milliseconds since the epoch.
 */
export function policyStatusFor(
  policy: ObservedPolicy,
  {
    view,
    problems = NO_PROBLEMS,
    now,
  }: { readonly view: PolicyView | undefined; readonly problems: PolicyProblems | undefined; readonly now: number },
): Json {
  const counts = { tenantCount: 0, namespaceCount: 0, refusedCount: 0, overriddenCount: 0 };
  const conditions = policy.hasRules ? [rulesConditionFor(policy, problems.ofRules, now)] : [];
  const status = {
    observedGeneration: policy.generation,
    conditions,
    problems: problems.messages,
    ...counts,
    ...(view !== undefined && countsOf(view)),
  };
  return Object.fromEntries(
    Object.entries(status).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  );
}

interface PolicyCondition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime: string;
}

/** Returns the condition that says whether all rules of a policy can act. */
function rulesConditionFor(
  { generation, status }: ObservedPolicy,
  problems: readonly string[],
  now: number,
): PolicyCondition & Json {
  const value = problems.length === 0 ? 'True' : 'False';
  const before = (status.conditions as readonly PolicyCondition[] | undefined)?.find(
    ({ type }) => type === RULES_ACCEPTED,
  );
  return {
    type: RULES_ACCEPTED,
    status: value,
    reason: problems.length === 0 ? 'Accepted' : 'InvalidRule',
    message: problems.length === 0 ? 'all rules can act' : truncateMessage(problems.join('; ')),
    observedGeneration: generation,
    lastTransitionTime: before?.status === value ? before.lastTransitionTime : timestampOf(now),
  };
}

const RULES_ACCEPTED = 'RulesAccepted';

function countsOf({ uid: _uid, name: _name, ...counts }: PolicyView): Omit<PolicyView, 'uid' | 'name'> {
  return counts;
}
