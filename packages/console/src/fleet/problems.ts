import {
  compareText,
  entriesOf,
  type FleetState,
  type Problem,
  type ProxyView,
  proxyViewsFor,
  type ServiceView,
  subjectFor,
} from '@weir/model';
import { FleetWatch, type FleetWatchOptions } from './fleet-watch.ts';

type ProxyProblemCode = 'ProxySilent' | 'StrayProxy';

/** A `Problem` of the translator, or a problem that exists only in a running fleet. */
export interface FleetProblem extends Omit<Problem, 'code'> {
  readonly code: string;
}

/** Returns the problems of objects, pending Services and proxies: first the errors and then the warnings, each sorted by subject. */
export function problemsFor(fleet: FleetState, services: readonly ServiceView[]): FleetProblem[] {
  const problems: FleetProblem[] = entriesOf(fleet.table, 'problem').map((entry) => entry.problem);
  for (const view of services) {
    if (view.state === 'Pending') problems.push(pendingServiceProblem(view));
  }
  for (const proxy of proxyViewsFor(fleet)) {
    if (proxy.state === 'Silent' && fleet.reachable) problems.push(proxyProblem('ProxySilent', proxy));
    if (proxy.state === 'Stray') problems.push(proxyProblem('StrayProxy', proxy));
  }
  const unique = new Map(problems.map((problem) => [`${problem.code}|${problem.subject}|${problem.message}`, problem]));
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

export interface ProblemChangeSet {
  readonly appeared: readonly FleetProblem[];
  readonly resolved: readonly FleetProblem[];
}

export interface WatchProblemsOptions extends Omit<FleetWatchOptions, 'onChange'> {
  readonly onChangeSet: (changeSet: ProblemChangeSet) => void;
}

/** Calls `onChangeSet` when problems appear or are resolved. Leaves out transient problems. */
export function watchProblems({ onChangeSet, ...options }: WatchProblemsOptions): { close(): Promise<void> } {
  let known: readonly FleetProblem[] = [];
  const watch: FleetWatch = new FleetWatch({
    ...options,
    onChange() {
      // Before the first heartbeats are read, every Service looks unreachable.
      if (!watch.isReady) return;
      const current = problemsFor(watch.fleet(), watch.views()).filter((problem) => !isTransient(problem));
      const changeSet = diffProblems(known, current);
      known = current;
      if (changeSet.appeared.length > 0 || changeSet.resolved.length > 0) onChangeSet(changeSet);
    },
  });
  return { close: () => watch.close() };
}

/** Compares two lists of problems. A problem with a changed message counts as resolved and as appeared. */
export function diffProblems(before: readonly FleetProblem[], after: readonly FleetProblem[]): ProblemChangeSet {
  const key = ({ code, subject, message }: FleetProblem): string => `${code}\n${subject}\n${message}`;
  const keysBefore = new Set(before.map(key));
  const keysAfter = new Set(after.map(key));
  return {
    appeared: after.filter((problem) => !keysBefore.has(key(problem))),
    resolved: before.filter((problem) => !keysAfter.has(key(problem))),
  };
}

/** Whether a problem usually ends within seconds: a Service waits for its proxy, or a proxy starts or stops. */
function isTransient({ code }: FleetProblem): boolean {
  return code === 'WaitingForProxy' || code === 'ProxySilent' || code === 'StrayProxy';
}
