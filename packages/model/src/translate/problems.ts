import { type Problem, type ProblemCode, subjectFor } from '../problem.ts';
import type { Snapshot, SuspensionObject } from '../snapshot.ts';
import type { ProblemEntry } from '../table/entry.ts';
import type { Nodes } from './nodes.ts';
import type { Outcome } from './outcome.ts';
import { isOwned } from './owned.ts';
import type { Tenancy } from './tenancy.ts';
import { counted } from './text.ts';

interface Findings {
  readonly outcomes: readonly Outcome[];
  readonly nodes: Nodes;
  readonly tenancy: Tenancy;
}

/** Refusals that go away when somebody else deletes, raises or moves something. */
const HEALING: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'QuotaExceeded',
  'PortConflict',
  'TenantConflict',
  'EndpointForbidden',
]);

/** Every problem of a snapshot, the source's own included, sorted by subject, code and message. */
export function problemsFor(snapshot: Snapshot, findings: Findings): readonly Problem[] {
  const problems = [
    ...snapshot.problems,
    ...findings.nodes.problems,
    ...findings.outcomes.flatMap(outcomeProblems),
    ...fleetProblems(snapshot, findings),
    ...snapshot.suspensions.flatMap((suspension) => suspensionProblems(suspension, snapshot, findings)),
  ];
  return problems.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

function sortKey({ subject, code, message }: Problem): string {
  return `${subject}\n${code}\n${message}`;
}

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

function outcomeProblems(outcome: Outcome): Problem[] {
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
    problems.push({ code: reason, subject, severity: 'error', heals: HEALING.has(reason), message });
  }
  if (outcome.settings !== null && !outcome.endpoints.entries.some(({ endpoints }) => endpoints.length > 0)) {
    const what = missingEndpoints(outcome);
    problems.push({
      code: 'NoReadyEndpoints',
      subject,
      severity: 'warning',
      heals: true,
      message: `${what}, so clients are refused until there is one`,
    });
  }
  return problems;
}

function fleetProblems(snapshot: Snapshot, { outcomes, nodes }: Findings): Problem[] {
  const { settings } = snapshot;
  const passed = snapshot.services.filter(
    (service) => service.type === 'LoadBalancer' && service.loadBalancerClass === null && !isOwned(service, settings),
  );
  if (outcomes.length === 0 && passed.length > 0 && !settings.classless) {
    return [
      {
        code: 'NoServices',
        subject: 'Fleet',
        severity: 'warning',
        heals: false,
        message: `${counted(passed.length, 'Service')} of type LoadBalancer name no class and are left alone, since only class ${settings.loadBalancerClass} is taken; to take them too use --classless (chart: controller.classless)`,
      },
    ];
  }
  if (outcomes.length === 0 || nodes.entries.length > 0) return [];
  return [
    {
      code: 'NoNodes',
      subject: 'Fleet',
      severity: 'error',
      heals: true,
      message:
        'no node has the label role=loadbalancer, so nothing is served; label one: kubectl label node NAME role=loadbalancer',
    },
  ];
}

function missingEndpoints({ endpoints }: Outcome): string {
  if (endpoints.entries.length > 0) return 'no endpoint is ready';
  return endpoints.forbidden.length > 0
    ? 'none of its endpoints may be used'
    : 'there is no EndpointSlice for its ports';
}

/** A Suspension of something that does not exist (yet) is legal, but most often a mistake in writing. */
function suspensionProblems(suspension: SuspensionObject, snapshot: Snapshot, findings: Findings): Problem[] {
  const missing = missingTarget(suspension, snapshot, findings);
  if (missing === undefined) return [];
  return [
    {
      code: 'UnknownTarget',
      subject: subjectFor('Suspension', suspension),
      severity: 'warning',
      heals: true,
      message: `${missing} does not exist, so nothing is cut off by it now; check spec.target`,
    },
  ];
}

function missingTarget(
  { target }: SuspensionObject,
  snapshot: Snapshot,
  { outcomes, tenancy }: Findings,
): string | undefined {
  switch (target.kind) {
    case 'tenant':
      return tenancy.tenants.has(target.tenant) ? undefined : `tenant "${target.tenant}"`;
    case 'namespace':
      return snapshot.namespaces.some(({ name }) => name === target.namespace) ||
        outcomes.some(({ service }) => service.namespace === target.namespace)
        ? undefined
        : `namespace "${target.namespace}"`;
    case 'service':
      return outcomes.some(({ service }) => service.namespace === target.namespace && service.name === target.service)
        ? undefined
        : `Service ${target.namespace}/${target.service} of this fleet`;
  }
}
