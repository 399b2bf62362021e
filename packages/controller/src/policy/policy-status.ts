import { type PolicyView, type Problem, subjectFor, truncateMessage } from '@weir/model';
import type { Json } from '../kubernetes/kube-api.ts';

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
