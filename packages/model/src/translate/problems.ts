import { closestName } from '../closest-name.ts';
import { isJsonEqual, mergeSorted } from '../compare.ts';
import { countOf, joinItems, joinSentences, quote } from '../message-text.ts';
import { type Problem, type ProblemCode, subjectFor } from '../problem.ts';
import type { ServiceObject, Snapshot, SuspensionObject } from '../snapshot.ts';
import type { ProblemEntry } from '../table/entry.ts';
import { readinessOf } from '../view/readiness.ts';
import { noNodesMessage } from './allocate/placement-messages.ts';
import { isIgnored, isOwned } from './owned-services.ts';
import type { TranslatedService } from './service-entries.ts';
import type { ServiceRegistry } from './service-registry.ts';
import type { EntryReplacement } from './table-builder.ts';

/** What exists in the snapshot, as far as `fleetProblems` and `suspensionProblems` need to know. */
export interface ProblemContext {
  readonly services: Pick<ServiceRegistry, 'size' | 'byPath' | 'ofNamespace'>;
  readonly hasTenant: (tenant: string) => boolean;
  readonly hasNodes: boolean;
  readonly hasNamespace: (name: string) => boolean;
}

/**
 * The refusals that can end without a change of the Service, for example because another Service releases a port, or a policy or Secret
 * changes.
 */
const SELF_HEALING_CODES: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'QuotaExceeded',
  'PortConflict',
  'PortNotAllowed',
  'PoolNotAllowed',
  'HostConflict',
  'HostNotAllowed',
  'TenantConflict',
  'SecretNotFound',
  'SecretForbidden',
  'InvalidCertificate',
  'EndpointForbidden',
]);

/** Returns the table entries of problems. Problems with the same subject and code get numbered ids. */
export function problemEntries(problems: readonly Problem[]): ProblemEntry[] {
  const seen = new Map<string, number>();
  return problems.map((problem) => {
    const id = `problem/${problem.subject}/${problem.code}`;
    const count = seen.get(id) ?? 0;
    seen.set(id, count + 1);
    return { kind: 'problem', id: count === 0 ? id : `${id}/${count}`, problem };
  });
}

/**
 * Returns the problems of one Service. If the fleet has no nodes, does not report that the Service has no nodes, because `fleetProblems`
 * reports this once for the whole fleet.
 */
export function serviceProblems(translated: TranslatedService, hasNodes: boolean): Problem[] {
  const subject = subjectFor('Service', translated.service);
  const problems: Problem[] = translated.degraded.map(({ reason, message }) => ({
    code: reason,
    subject,
    severity: 'warning',
    heals: reason !== 'SourceAddressNotPreserved' && reason !== 'NodePortBypass',
    message,
  }));
  const { reason, message } = translated.accepted;
  if (reason !== 'Accepted') {
    problems.push({ code: reason, subject, severity: 'error', heals: SELF_HEALING_CODES.has(reason), message });
  }
  problems.push(...otherPortProblems(translated, subject));
  if (translated.settings !== null && translated.nodes.length === 0 && hasNodes) {
    problems.push({
      code: 'NoNodes',
      subject,
      severity: 'warning',
      heals: true,
      message: noNodesMessage(translated.pool),
    });
  }
  const notReady = translated.settings === null ? null : readinessOf(translated, translated.endpoints.entries).message;
  if (notReady !== null) {
    problems.push({ code: 'NoReadyEndpoints', subject, severity: 'warning', heals: true, message: notReady });
  }
  return problems;
}

/** Returns a problem for each reason of refused ports that is not the reason for which the Service is refused. */
function otherPortProblems({ ports, accepted }: TranslatedService, subject: string): Problem[] {
  const errors = ports.flatMap(({ error }) => (error === null || error.reason === accepted.reason ? [] : error));
  return [...Map.groupBy(errors, ({ reason }) => reason)]
    .map(([code, sameReason]) => [code, joinSentences([...new Set(sameReason.map(({ message }) => message))])] as const)
    .filter(([, message]) => !accepted.message.includes(message))
    .map(([code, message]) => ({ code, subject, severity: 'error', heals: SELF_HEALING_CODES.has(code), message }));
}

/** Returns the problems of the fleet as a whole: it has Services but no nodes, or it does not serve Services because of their class. */
export function fleetProblems(snapshot: Snapshot, { services, hasNodes }: ProblemContext): Problem[] {
  const problems = services.size > 0 && !hasNodes ? [NO_NODES_PROBLEM] : [];
  const { settings } = snapshot;
  // Manifests in files are for this fleet. In a cluster, Services of other load balancers are normal.
  const areFiles = settings.trust.kind === 'files';
  if (services.size > 0 && !areFiles) return problems;
  const unserved = snapshot.services.filter(
    (service) =>
      service.type === 'LoadBalancer' && !service.deleting && !isIgnored(service) && !isOwned(service, settings),
  );
  const [classless, ofOtherClass] = [true, false].map((isClassless) =>
    unserved.filter(({ loadBalancerClass }) => (loadBalancerClass === null) === isClassless),
  ) as [ServiceObject[], ServiceObject[]];
  if (classless.length > 0) problems.push(classlessProblem(classless, settings.loadBalancerClass));
  if (areFiles && ofOtherClass.length > 0) problems.push(otherClassProblem(ofOtherClass, settings.loadBalancerClass));
  return problems;
}

function classlessProblem({ length }: readonly ServiceObject[], served: string): Problem {
  const [have, are, them] = length === 1 ? ['has', 'is', 'it'] : ['have', 'are', 'them'];
  return noServicesProblem(
    `${countOf(length, 'Service')} of type LoadBalancer ${have} no loadBalancerClass and ${are} ignored, because Weir serves only class ${served}; to serve ${them} too, use --classless (chart: controller.classless)`,
  );
}

function otherClassProblem(services: readonly ServiceObject[], served: string): Problem {
  const [name, are] = services.length === 1 ? ['names', 'is'] : ['name', 'are'];
  const list = joinItems(
    services.map((service) => `${service.namespace}/${service.name}: ${quote(service.loadBalancerClass ?? '')}`),
  );
  const isTypo = services.some((service) => closestName(service.loadBalancerClass ?? '', [served]) !== undefined);
  const advice = isTypo ? `did you mean ${served}?` : `Weir serves only class ${served}`;
  return noServicesProblem(
    `${countOf(services.length, 'Service')} of type LoadBalancer ${name} another loadBalancerClass (${list}) and ${are} ignored; ${advice}`,
  );
}

function noServicesProblem(message: string): Problem {
  return { code: 'NoServices', subject: 'Fleet', severity: 'warning', heals: false, message };
}

const NO_NODES_PROBLEM: Problem = {
  code: 'NoNodes',
  subject: 'Fleet',
  severity: 'error',
  heals: true,
  message:
    'no node has the label role=loadbalancer, so nothing is served; label one: kubectl label node NAME role=loadbalancer',
};

/**
 * Returns a warning for each Suspension whose target does not exist. Such a Suspension is allowed, but mostly the name of the target is
 * misspelled.
 */
export function suspensionProblems(snapshot: Snapshot, context: ProblemContext): Problem[] {
  return snapshot.suspensions.flatMap((suspension) => {
    const missing = missingTarget(suspension, context);
    if (missing === undefined) return [];
    return {
      code: 'UnknownTarget',
      subject: subjectFor('Suspension', suspension),
      severity: 'warning',
      heals: true,
      message: `${missing} does not exist, so the Suspension has no effect; check spec.target`,
    };
  });
}

function missingTarget(
  { target }: SuspensionObject,
  { services, hasTenant, hasNamespace }: ProblemContext,
): string | undefined {
  switch (target.kind) {
    case 'tenant':
      return hasTenant(target.tenant) ? undefined : `tenant "${target.tenant}"`;
    case 'namespace':
      return hasNamespace(target.namespace) || services.ofNamespace(target.namespace).size > 0
        ? undefined
        : `namespace "${target.namespace}"`;
    case 'service':
      return services.byPath(`${target.namespace}/${target.service}`) !== undefined
        ? undefined
        : `Service ${target.namespace}/${target.service} of this fleet`;
  }
}

/**
 * Holds all problems of a snapshot, sorted by subject, code and message. Each problem belongs to a source, such as a Service. A change of
 * one source does not sort all problems again.
 */
export class ProblemIndex<K> {
  readonly #bySource = new Map<K, readonly KeyedProblem[]>();
  /** The problems by `KeyedProblem.group`. The table entries of one group are numbered. */
  readonly #groups = new Map<string, KeyedProblem[]>();
  readonly #entries = new Map<string, readonly ProblemEntry[]>();
  #sorted: readonly KeyedProblem[] = [];
  #problems: readonly Problem[] = [];
  /** The problems that were added and removed since `all` was last read. */
  readonly #added = new Set<KeyedProblem>();
  readonly #removed = new Set<KeyedProblem>();
  /** Keys of the groups that changed since the last `updateEntries`. */
  readonly #changedGroups = new Set<string>();

  /** Replaces the problems of one source. */
  set(source: K, problems: readonly Problem[]): void {
    const before = this.#bySource.get(source) ?? [];
    if (before.length === problems.length && before.every(({ problem }, i) => isJsonEqual(problem, problems[i])))
      return;
    const after = problems.map(keyedProblem);
    this.#remove(before);
    for (const keyed of after) this.#add(keyed);
    if (after.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, after);
  }

  /** All problems. Returns the same list until a problem changes. */
  get all(): readonly Problem[] {
    if (this.#added.size === 0 && this.#removed.size === 0) return this.#problems;
    const kept = this.#sorted.filter((keyed) => !this.#removed.has(keyed));
    this.#sorted = mergeSorted(kept, [...this.#added], byKey);
    this.#problems = this.#sorted.map(({ problem }) => problem);
    this.#added.clear();
    this.#removed.clear();
    return this.#problems;
  }

  /** Returns the table entries of the groups that changed since the last call. */
  updateEntries(): EntryReplacement[] {
    const replacements = [...this.#changedGroups].map((key) => {
      const before = this.#entries.get(key) ?? [];
      const group = [...(this.#groups.get(key) ?? [])].sort(byKey);
      const after = problemEntries(group.map(({ problem }) => problem));
      if (after.length === 0) this.#entries.delete(key);
      else this.#entries.set(key, after);
      return { before, after };
    });
    this.#changedGroups.clear();
    return replacements;
  }

  #add(keyed: KeyedProblem): void {
    this.#added.add(keyed);
    this.#changedGroups.add(keyed.group);
    const group = this.#groups.get(keyed.group);
    if (group === undefined) this.#groups.set(keyed.group, [keyed]);
    else group.push(keyed);
  }

  #remove(problems: readonly KeyedProblem[]): void {
    const removed = new Set(problems);
    for (const keyed of problems) {
      // A problem that was added after `all` was read last is not in the sorted list yet.
      if (!this.#added.delete(keyed)) this.#removed.add(keyed);
      this.#changedGroups.add(keyed.group);
    }
    for (const key of new Set(problems.map(({ group }) => group))) {
      const rest = (this.#groups.get(key) ?? []).filter((keyed) => !removed.has(keyed));
      if (rest.length === 0) this.#groups.delete(key);
      else this.#groups.set(key, rest);
    }
  }
}

interface KeyedProblem {
  readonly problem: Problem;
  /** The key of all problems with the same subject and code. */
  readonly group: string;
  /** The sort key: subject, code and message. */
  readonly key: string;
}

function keyedProblem(problem: Problem): KeyedProblem {
  const { subject, code, message } = problem;
  const group = `${subject}\n${code}`;
  return { problem, group, key: `${group}\n${message}` };
}

function byKey(a: KeyedProblem, b: KeyedProblem): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
