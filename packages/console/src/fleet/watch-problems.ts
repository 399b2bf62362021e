import { FleetWatch, type FleetWatchOptions } from './fleet-watch.ts';
import { type FleetProblem, problemsFor } from './problem-list.ts';

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
