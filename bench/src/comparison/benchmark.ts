import type { AvailablePrograms } from '../provide-programs.ts';
import { logProgress, startRun } from '../report/run-metadata.ts';
import { reasonToDiscardComparison, saveOrExplain } from '../report/save-result.ts';
import type { SubjectName } from '../subjects/subject.ts';
import {
  type ComparisonResult,
  formatComparison,
  type ScenarioReadings,
  type ScenarioSummary,
  summarizeScenario,
} from './comparison-result.ts';
import { ComparisonRun, type ComparisonRunOptions } from './comparison-run.ts';

export type Comparison<Backend extends string, Name extends SubjectName> = {
  readonly name: 'l4' | 'l7';
  readonly programs: AvailablePrograms<Name>;
  /** The scenarios in the order in which they run, by name. */
  readonly scenarios: Readonly<Record<string, Scenario<Backend, Name>>>;
  /** Names of the selected scenarios; absent if all run. */
  readonly selected: readonly string[] | undefined;
  readonly run: ComparisonRunOptions<Backend, Name>;
};

export type Scenario<Backend extends string, Name extends SubjectName> = (
  run: ComparisonRun<Backend, Name>,
) => Promise<ScenarioReadings[]>;

/**
 * Runs the selected scenarios, prints the result and saves it. Returns the exit code: 1 if a scenario is invalid. The other scenarios
 * still run, but no result is written.
 */
export async function runComparison<Backend extends string, Name extends SubjectName>({
  name,
  programs,
  scenarios,
  selected,
  run: options,
}: Comparison<Backend, Name>): Promise<number> {
  const { rounds, seconds, subjects, signal } = options;
  const endRun = startRun(programs.versions);
  const startedAt = Date.now();
  await using run = new ComparisonRun(options);
  for (const note of programs.leftOut) run.leaveOut(note);
  const summaries: ScenarioSummary[] = [];
  const failures: string[] = [];
  const running = Object.entries(scenarios).filter(([scenario]) => selected?.includes(scenario) ?? true);
  for (const [index, [scenario, measure]] of running.entries()) {
    const elapsed = Math.round((Date.now() - startedAt) / 1000);
    logProgress(`${scenario}, scenario ${index + 1} of ${running.length}, after ${elapsed} s`);
    try {
      summaries.push(...(await measure(run)).map(summarizeScenario));
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${scenario}: ${(error as Error).message}`);
      logProgress(`INVALID: ${failures.at(-1)}`);
    }
  }
  const result: ComparisonResult = {
    ...endRun(),
    rounds,
    seconds,
    subjects: [...run.descriptions].map(([subject, description]) => ({ name: subject, description })),
    scenarios: summaries,
    leftOut: [...run.leftOut],
  };
  console.log(formatComparison(result));
  const conditions = {
    ...{ rounds, subjects },
    ...(selected === undefined ? {} : { scenarios: selected }),
    ...(options.profileDirectory === undefined ? {} : { profileDirectory: options.profileDirectory }),
  };
  saveOrExplain(name, result, {
    reasonToDiscard: failures.length > 0 ? `invalid: ${failures.join('; ')}` : reasonToDiscardComparison(conditions),
  });
  return failures.length === 0 ? 0 : 1;
}
