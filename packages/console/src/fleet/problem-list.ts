import {
  entriesOf,
  type FleetState,
  type Problem,
  type ProxyView,
  proxyViewsFor,
  type ServiceView,
  subjectFor,
} from '@weir/model';

/** What is a problem of a proxy, beside those of the objects and what Services wait for. */
type ProxyProblemCode = 'ProxySilent' | 'StrayProxy';

/** Like a `Problem`, but also with what only the running fleet knows. */
export interface FleetProblem extends Omit<Problem, 'code'> {
  readonly code: string;
}

/** What the translator found, and what the proxies say now; errors first, then by subject. */
export function problemsFor(fleet: FleetState, services: readonly ServiceView[]): FleetProblem[] {
  const found: FleetProblem[] = entriesOf(fleet.table, 'problem').map((entry) => entry.problem);
  for (const view of services) {
    if (view.state === 'Pending') found.push(pendingServiceProblem(view));
  }
  for (const proxy of proxyViewsFor(fleet)) {
    if (proxy.state === 'Silent' && fleet.reachable) found.push(proxyProblem('ProxySilent', proxy));
    if (proxy.state === 'Stray') found.push(proxyProblem('StrayProxy', proxy));
  }
  const unique = new Map(found.map((problem) => [`${problem.code}|${problem.subject}|${problem.message}`, problem]));
  return [...unique.values()].sort(
    (a, b) => Number(b.severity === 'error') - Number(a.severity === 'error') || compareText(a.subject, b.subject),
  );
}

function pendingServiceProblem(view: ServiceView): FleetProblem {
  return {
    code: view.reason,
    subject: subjectFor('Service', view),
    severity: view.reason === 'WaitingForProxy' ? 'warning' : 'error',
    heals: true,
    message: view.message,
  };
}

function proxyProblem(code: ProxyProblemCode, { node, message }: ProxyView): FleetProblem {
  const severity = code === 'ProxySilent' ? 'error' : 'warning';
  return { code, subject: subjectFor('Node', { name: node }), severity, heals: true, message: message ?? '' };
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
