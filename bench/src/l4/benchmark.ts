import type { L4Options } from '../arguments.ts';
import { startBackends } from '../backends/start-backends.ts';
import { provideSubjects } from '../provide-programs.ts';
import { describeMachine, readWorkTree } from '../report/run-metadata.ts';
import { reasonToDiscard, saveResult } from '../report/save-result.ts';
import type { ScenarioResult } from './l4-result.ts';
import { l4Table } from './l4-result.ts';
import { L4Run } from './l4-run.ts';
import { L4_SCENARIO_NAMES } from './scenario-names.ts';
import { scenarios } from './scenarios.ts';

/** Returns the exit code. A scenario that is not valid leaves the others to be looked at, and nothing is written. */
export async function benchmarkL4(options: L4Options, signal: AbortSignal): Promise<number> {
  const { versions, subjects, leftOut } = await provideSubjects(options, ['nginx', 'wrk']);
  const at = new Date();
  const tree = readWorkTree();
  await using backends = await startBackends();
  await using stage = new L4Run({ ...options, subjects, backends, signal });
  for (const note of leftOut) stage.leaveOut(note);
  const results: ScenarioResult[] = [];
  const failures: string[] = [];
  const chosen = options.only ?? L4_SCENARIO_NAMES;
  for (const [index, name] of chosen.entries()) {
    stage.logProgress(
      `${name}, ${index + 1} of ${chosen.length}, ${Math.round((Date.now() - at.getTime()) / 1000)} s so far`,
    );
    try {
      results.push(...(await scenarios[name](stage)));
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${name}: ${(error as Error).message}`);
      stage.logProgress(`NOT VALID: ${failures.at(-1)}`);
    }
  }
  const result = {
    at: at.toISOString(),
    ...tree,
    machine: describeMachine(),
    versions,
    pairs: options.pairs,
    seconds: options.seconds,
    subjects: [...stage.descriptions].map(([name, description]) => ({ name, description })),
    scenarios: results,
    leftOut: [...stage.leftOut],
  };
  console.log(l4Table(result));
  const reason = failures.length > 0 ? `not valid: ${failures.join('; ')}` : reasonToDiscard({ ...options, subjects });
  console.log(reason === undefined ? `\nwritten to ${saveResult('l4', result)}` : `\nnot written: ${reason}`);
  return failures.length === 0 ? 0 : 1;
}
