import { FleetWatch, type FleetWatchOptions } from './fleet-watch.ts';
import { type FleetProblem, problemsFor } from './problem-list.ts';

export interface ProblemNews {
  readonly come: readonly FleetProblem[];
  readonly gone: readonly FleetProblem[];
}

export interface WatchProblemsOptions extends Omit<FleetWatchOptions, 'onChange'> {
  readonly onNews: (news: ProblemNews) => void;
}

/** Tells of problems as they come and go, for whoever has no page open. */
export function watchProblems({ onNews, ...options }: WatchProblemsOptions): { close(): Promise<void> } {
  let known: readonly FleetProblem[] = [];
  const watch: FleetWatch = new FleetWatch({
    ...options,
    onChange() {
      // Before the proxies were heard every Service looks as if nobody could be reached.
      if (!watch.isReady) return;
      const now = problemsFor(watch.fleet(), watch.views()).filter((problem) => !isPassing(problem));
      const news = problemNews(known, now);
      known = now;
      if (news.come.length > 0 || news.gone.length > 0) onNews(news);
    },
  });
  return { close: () => watch.close() };
}

/** What differs between two lists of problems; the same problem in other words has come and gone. */
export function problemNews(before: readonly FleetProblem[], after: readonly FleetProblem[]): ProblemNews {
  const key = ({ code, subject, message }: FleetProblem): string => `${code}\n${subject}\n${message}`;
  const had = new Set(before.map(key));
  const has = new Set(after.map(key));
  return {
    come: after.filter((problem) => !had.has(key(problem))),
    gone: before.filter((problem) => !has.has(key(problem))),
  };
}

/** The second between the table and the proxies' answer is no news, nor is a proxy that is only starting or ending. */
function isPassing({ code }: FleetProblem): boolean {
  return code === 'WaitingForProxy' || code === 'ProxySilent' || code === 'StrayProxy';
}
