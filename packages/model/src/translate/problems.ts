import { countOf } from '../message-text.ts';
import { type Problem, type ProblemCode, subjectFor } from '../problem.ts';
import type { Snapshot, SuspensionObject } from '../snapshot.ts';
import type { ProblemEntry } from '../table/entry.ts';
import { readinessOf } from '../view/readiness.ts';
import { noNodesMessage } from './allocate/placement-messages.ts';
import { isOwned } from './owned-services.ts';
import type { TranslatedService } from './service-entries.ts';
import type { ServiceRegistry } from './service-registry.ts';

/** What problems beside those of a Service are about. */
export interface ProblemContext {
  readonly services: Pick<ServiceRegistry, 'size' | 'byPath' | 'ofNamespace'>;
  readonly hasTenant: (tenant: string) => boolean;
  readonly hasNodes: boolean;
  readonly hasNamespace: (name: string) => boolean;
}

/** Refusals that go away when somebody else deletes, raises or moves something. */
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

/** Table entries of the problems; two of one subject and code are numbered. */
export function problemEntries(problems: readonly Problem[]): ProblemEntry[] {
  const seen = new Map<string, number>();
  return problems.map((problem) => {
    const id = `problem/${problem.subject}/${problem.code}`;
    const count = seen.get(id) ?? 0;
    seen.set(id, count + 1);
    return { kind: 'problem', id: count === 0 ? id : `${id}/${count}`, problem };
  });
}

/** `hasNodes`: any at all; when there are none, one problem of the fleet says so. */
export function serviceProblems(outcome: TranslatedService, hasNodes: boolean): Problem[] {
  const subject = subjectFor('Service', outcome.service);
  const problems: Problem[] = outcome.degraded.map(({ reason, message }) => ({
    code: reason,
    subject,
    severity: 'warning',
    heals: reason !== 'SourceAddressNotPreserved' && reason !== 'NodePortBypass',
    message,
  }));
  const { reason, message } = outcome.accepted;
  if (reason !== 'Accepted') {
    problems.push({ code: reason, subject, severity: 'error', heals: SELF_HEALING_CODES.has(reason), message });
  }
  if (outcome.settings !== null && outcome.nodes.length === 0 && hasNodes) {
    problems.push({
      code: 'NoNodes',
      subject,
      severity: 'warning',
      heals: true,
      message: noNodesMessage(outcome.pool),
    });
  }
  const refusing = outcome.settings === null ? null : readinessOf(outcome, outcome.endpoints.entries).message;
  if (refusing !== null) {
    problems.push({ code: 'NoReadyEndpoints', subject, severity: 'warning', heals: true, message: refusing });
  }
  return problems;
}

/** Of the fleet as a whole: nothing to serve, or nobody to serve it. */
export function fleetProblems(snapshot: Snapshot, { services, hasNodes }: ProblemContext): Problem[] {
  const { settings } = snapshot;
  if (services.size > 0) return hasNodes ? [] : [NO_NODES_PROBLEM];
  if (settings.classless) return [];
  const passed = snapshot.services.filter(
    (service) => service.type === 'LoadBalancer' && service.loadBalancerClass === null && !isOwned(service, settings),
  );
  if (passed.length === 0) return [];
  const [name, are, them] = passed.length === 1 ? ['names', 'is', 'it'] : ['name', 'are', 'them'];
  return [
    {
      code: 'NoServices',
      subject: 'Fleet',
      severity: 'warning',
      heals: false,
      message: `${countOf(passed.length, 'Service')} of type LoadBalancer ${name} no class and ${are} left alone, since only class ${settings.loadBalancerClass} is taken; to take ${them} too use --classless (chart: controller.classless)`,
    },
  ];
}

const NO_NODES_PROBLEM: Problem = {
  code: 'NoNodes',
  subject: 'Fleet',
  severity: 'error',
  heals: true,
  message:
    'no node has the label role=loadbalancer, so nothing is served; label one: kubectl label node NAME role=loadbalancer',
};

/** A Suspension of something that does not exist (yet) is legal, but most often a mistake in writing. */
export function suspensionProblems(snapshot: Snapshot, findings: ProblemContext): Problem[] {
  return snapshot.suspensions.flatMap((suspension) => {
    const missing = missingTarget(suspension, findings);
    if (missing === undefined) return [];
    return {
      code: 'UnknownTarget',
      subject: subjectFor('Suspension', suspension),
      severity: 'warning',
      heals: true,
      message: `${missing} does not exist, so nothing is cut off by it now; check spec.target`,
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
