import { startBackends } from '../backends/start-backends.ts';
import { runComparison } from '../comparison/benchmark.ts';
import { provideSubjects } from '../provide-programs.ts';
import { startSubject } from '../subjects/start-subject.ts';
import type { L4Options } from './options.ts';
import { RELAY_CHECKS } from './relay-checks.ts';
import { type L4RunOptions, scenarios } from './scenarios.ts';

/** Returns the exit code: 1 if a scenario is invalid. The other scenarios still run, but no result is written. */
export async function benchmarkL4(options: L4Options, signal: AbortSignal): Promise<number> {
  const programs = await provideSubjects(options, ['nginx', 'wrk']);
  await using backends = await startBackends();
  const run: L4RunOptions = {
    ...options,
    ...{ subjects: programs.subjects, signal, checks: RELAY_CHECKS },
    start: (name, startOptions) => startSubject(name, backends.ports, startOptions),
    direct: {
      name: 'direct',
      description: 'no proxy',
      pid: backends.echoPid,
      ports: backends.ports,
      [Symbol.asyncDispose]: async () => {},
    },
  };
  return await runComparison({ name: 'l4', programs, scenarios, selected: options.scenarios, run });
}
