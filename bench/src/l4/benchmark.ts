import { startBackends } from '../backends/start-backends.ts';
import { provideSubjects } from '../provide-programs.ts';
import { logProgress, startRun } from '../report/run-metadata.ts';
import { reasonToDiscardComparison, saveOrExplain } from '../report/save-result.ts';
import { formatL4Result, type L4Result, type ScenarioSummary, summarizeScenario } from './l4-result.ts';
import { L4Run } from './l4-run.ts';
import { L4_SCENARIO_NAMES, type L4Options } from './options.ts';
import { scenarios } from './scenarios.ts';

/** Returns the exit code: 1 if a scenario is invalid. The other scenarios still run, but no result is written. */
export async function benchmarkL4(options: L4Options, signal: AbortSignal): Promise<number> {
  const { versions, subjects, leftOut } = await provideSubjects(options, ['nginx', 'wrk']);
  const endRun = startRun(versions);
  const startedAt = Date.now();
  await using backends = await startBackends();
  await using run = new L4Run({ ...options, subjects, backends, signal });
  for (const note of leftOut) run.leaveOut(note);
  const summaries: ScenarioSummary[] = [];
  const failures: string[] = [];
  const selected = options.scenarios ?? L4_SCENARIO_NAMES;
  for (const [index, name] of selected.entries()) {
    const elapsed = Math.round((Date.now() - startedAt) / 1000);
    logProgress(`${name}, scenario ${index + 1} of ${selected.length}, after ${elapsed} s`);
    try {
      summaries.push(...(await scenarios[name](run)).map(summarizeScenario));
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${name}: ${(error as Error).message}`);
      logProgress(`INVALID: ${failures.at(-1)}`);
    }
  }
  const result: L4Result = {
    ...endRun(),
    rounds: options.rounds,
    seconds: options.seconds,
    subjects: [...run.descriptions].map(([name, description]) => ({ name, description })),
    scenarios: summaries,
    leftOut: [...run.leftOut],
  };
  console.log(formatL4Result(result));
  saveOrExplain('l4', result, {
    reasonToDiscard:
      failures.length > 0 ? `invalid: ${failures.join('; ')}` : reasonToDiscardComparison({ ...options, subjects }),
  });
  return failures.length === 0 ? 0 : 1;
}
