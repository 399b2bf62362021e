import type { L4Options } from '../arguments.ts';
import { startBackends } from '../backends/start-backends.ts';
import { provideFor } from '../provide.ts';
import { machine } from '../report/machine.ts';
import { reasonNotToKeep } from '../report/reason-not-to-keep.ts';
import type { ScenarioResult } from '../report/result.ts';
import { tableFor } from '../report/table.ts';
import { workTree } from '../report/work-tree.ts';
import { writeResult } from '../report/write-result.ts';
import { scenarioNames } from './scenario-name.ts';
import { scenarios } from './scenarios.ts';
import { Stage } from './stage.ts';

/** Returns the exit code. A scenario that is not valid leaves the others to be looked at, and nothing is written. */
export async function benchmarkL4(options: L4Options, signal: AbortSignal): Promise<number> {
  const { versions, subjects, leftOut } = await provideFor(options, ['nginx', 'wrk']);
  const at = new Date();
  const tree = workTree();
  await using backends = await startBackends();
  await using stage = new Stage({ ...options, subjects, backends, signal });
  for (const note of leftOut) stage.leaveOut(note);
  const results: ScenarioResult[] = [];
  const failures: string[] = [];
  const chosen = options.only ?? scenarioNames;
  for (const [index, name] of chosen.entries()) {
    stage.say(`${name}, ${index + 1} of ${chosen.length}, ${Math.round((Date.now() - at.getTime()) / 1000)} s so far`);
    try {
      results.push(...(await scenarios[name](stage)));
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${name}: ${(error as Error).message}`);
      stage.say(`NOT VALID: ${failures.at(-1)}`);
    }
  }
  const result = {
    at: at.toISOString(),
    ...tree,
    machine: machine(),
    versions,
    pairs: options.pairs,
    seconds: options.seconds,
    subjects: [...stage.descriptions].map(([name, description]) => ({ name, description })),
    scenarios: results,
    leftOut: [...stage.leftOut],
  };
  console.log(tableFor(result));
  const reason = failures.length > 0 ? `not valid: ${failures.join('; ')}` : reasonNotToKeep({ ...options, subjects });
  console.log(reason === undefined ? `\nwritten to ${writeResult('l4', result)}` : `\nnot written: ${reason}`);
  return failures.length === 0 ? 0 : 1;
}
