import { entriesOf, type Fleet, type Problem, proxyViewsFor, type ServiceView, subjectFor } from '@weir/model';

/** Like a `Problem`, but also with what only the running fleet knows. */
export interface FleetProblem extends Omit<Problem, 'code'> {
  readonly code: string;
}

/** What the translator found, and what the proxies say now; errors first, then by subject. */
export function problemsFor(fleet: Fleet, services: readonly ServiceView[]): FleetProblem[] {
  const found: FleetProblem[] = entriesOf(fleet.table, 'problem').map((entry) => entry.problem);
  for (const view of services) {
    if (view.state === 'Pending') found.push(pendingProblem(view));
  }
  for (const proxy of proxyViewsFor(fleet)) {
    if (proxy.state === 'Silent' && fleet.reachable) found.push(silentProblem(proxy.node));
  }
  const unique = new Map(found.map((problem) => [`${problem.code}|${problem.subject}|${problem.message}`, problem]));
  return [...unique.values()].sort(
    (a, b) => Number(b.severity === 'error') - Number(a.severity === 'error') || compare(a.subject, b.subject),
  );
}

function pendingProblem(view: ServiceView): FleetProblem {
  return {
    code: view.reason,
    subject: subjectFor('Service', view),
    severity: view.reason === 'WaitingForProxy' ? 'warning' : 'error',
    heals: true,
    message: view.message,
  };
}

function silentProblem(node: string): FleetProblem {
  return {
    code: 'ProxySilent',
    subject: subjectFor('Node', { name: node }),
    severity: 'error',
    heals: true,
    message: `no proxy of node "${node}" has been heard for 3 s; look at its pod and whether it reaches the store`,
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
