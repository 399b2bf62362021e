import {
  compareText,
  entriesOf,
  type FleetState,
  noticesAbout,
  type Problem,
  type ProxyView,
  proxyViewsFor,
  type ServiceView,
  subjectFor,
  type UsageNotices,
} from '@weir/model';
import type { Timer } from '@weir/runtime';
import { FleetWatch, type FleetWatchOptions } from './fleet-watch.ts';

type ProxyProblemCode = 'ProxySilent' | 'StrayProxy';

/** A `Problem` of the translator, or a problem that exists only in a running fleet. */
export interface FleetProblem extends Omit<Problem, 'code'> {
  readonly code: string;
}

/**
 * Returns the problems of objects, pending Services and proxies: first the errors and then the warnings, each sorted by subject. `notices`
 * is what the ledger says about tenants and Services.
 */
export function problemsFor(
  fleet: FleetState,
  services: readonly ServiceView[],
  notices: UsageNotices,
): FleetProblem[] {
  const problems: FleetProblem[] = entriesOf(fleet.table, 'problem').map((entry) => entry.problem);
  problems.push(...usageProblems(services, notices), ...unhealthyEndpointProblems(fleet, services));
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

function usageProblems(services: readonly ServiceView[], notices: UsageNotices): FleetProblem[] {
  return services.flatMap((view) => {
    const subject = subjectFor('Service', view);
    return noticesAbout(view, notices).map(
      ({ reason, message }): FleetProblem => ({ code: reason, subject, severity: 'warning', heals: true, message }),
    );
  });
}

/** Returns a warning for each Service with endpoints that do not work for a proxy, although their pods are ready. */
function unhealthyEndpointProblems({ heartbeats }: FleetState, services: readonly ServiceView[]): FleetProblem[] {
  const reports = heartbeats
    .filter(({ draining }) => !draining)
    .flatMap(({ node, unhealthy }) => (unhealthy?.endpoints ?? []).map((each) => ({ ...each, node })));
  const byService = Map.groupBy(reports, ({ service }) => service);
  if (byService.size === 0) return [];
  return services.flatMap((view) => {
    const unhealthy = byService.get(view.uid);
    if (unhealthy === undefined) return [];
    const byEndpoint = new Map(
      unhealthy.map((each) => [`${each.endpoint.address}:${each.endpoint.port} (${each.node}: ${each.why})`, each]),
    );
    const names = [...byEndpoint.keys()].sort();
    const more = names.length > MAX_LISTED_ENDPOINTS ? ` and ${names.length - MAX_LISTED_ENDPOINTS} more` : '';
    const message = `endpoints do not work for a proxy: ${names.slice(0, MAX_LISTED_ENDPOINTS).join(', ')}${more}; check these pods ("weir explain ${view.namespace}/${view.name}" shows all)`;
    const subject = subjectFor('Service', view);
    return [{ code: 'UnhealthyEndpoints', subject, severity: 'warning', heals: true, message }];
  });
}

const MAX_LISTED_ENDPOINTS = 5;

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

/**
 * How long changes are collected before the problems are computed again. In `weir standalone` the proxies apply a change in the same thread,
 * and clients wait for the proxies.
 */
const COLLECT_MS = 100;

/** Calls `onChangeSet` when problems appear or are resolved. Leaves out transient problems. */
export function watchProblems({ onChangeSet, ...options }: WatchProblemsOptions): { close(): Promise<void> } {
  let known: readonly FleetProblem[] | undefined;
  let timer: Timer | undefined;
  const report = (): void => {
    timer = undefined;
    const current = problemsFor(watch.fleet(), watch.views(), watch.notices).filter((problem) => !isTransient(problem));
    const changeSet = diffProblems(known ?? [], current);
    known = current;
    if (changeSet.appeared.length > 0 || changeSet.resolved.length > 0) onChangeSet(changeSet);
  };
  const watch: FleetWatch = new FleetWatch({
    ...options,
    onChange() {
      // Before the first heartbeats are read, every Service looks unreachable.
      if (!watch.isReady) return;
      if (known === undefined) report();
      else timer ??= options.clock.setTimeout(report, COLLECT_MS);
    },
  });
  return {
    async close() {
      timer?.cancel();
      await watch.close();
    },
  };
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

const TRANSIENT_CODES = ['WaitingForProxy', 'ProxySilent', 'StrayProxy', 'UnhealthyEndpoints'];

/**
 * Whether a problem usually ends within seconds: a Service waits for its proxy, a proxy starts or stops, or a proxy tries an endpoint again.
 */
function isTransient({ code }: FleetProblem): boolean {
  return TRANSIENT_CODES.includes(code);
}
