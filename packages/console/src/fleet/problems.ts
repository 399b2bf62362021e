import {
  entriesOf,
  type FleetState,
  type Problem,
  type ProxyView,
  proxyViewsFor,
  type ServiceView,
  subjectFor,
} from '@weir/model';
import { FleetWatch, type FleetWatchOptions } from './fleet-watch.ts';

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

export interface ProblemChangeSet {
  readonly appeared: readonly FleetProblem[];
  readonly resolved: readonly FleetProblem[];
}

export interface WatchProblemsOptions extends Omit<FleetWatchOptions, 'onChange'> {
  readonly onChangeSet: (news: ProblemChangeSet) => void;
}

/** Tells of problems as they come and go, for whoever has no page open. */
export function watchProblems({ onChangeSet, ...options }: WatchProblemsOptions): { close(): Promise<void> } {
  let known: readonly FleetProblem[] = [];
  const watch: FleetWatch = new FleetWatch({
    ...options,
    onChange() {
      // Before the proxies were heard every Service looks as if nobody could be reached.
      if (!watch.isReady) return;
      const now = problemsFor(watch.fleet(), watch.views()).filter((problem) => !isTransient(problem));
      const news = diffProblems(known, now);
      known = now;
      if (news.appeared.length > 0 || news.resolved.length > 0) onChangeSet(news);
    },
  });
  return { close: () => watch.close() };
}

/** What differs between two lists of problems; the same problem in other words has come and gone. */
export function diffProblems(before: readonly FleetProblem[], after: readonly FleetProblem[]): ProblemChangeSet {
  const key = ({ code, subject, message }: FleetProblem): string => `${code}\n${subject}\n${message}`;
  const had = new Set(before.map(key));
  const has = new Set(after.map(key));
  return {
    appeared: after.filter((problem) => !had.has(key(problem))),
    resolved: before.filter((problem) => !has.has(key(problem))),
  };
}

/** The second between the table and the proxies' answer is no news, nor is a proxy that is only starting or ending. */
function isTransient({ code }: FleetProblem): boolean {
  return code === 'WaitingForProxy' || code === 'ProxySilent' || code === 'StrayProxy';
}
