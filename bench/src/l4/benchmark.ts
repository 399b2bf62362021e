import { type ProgramName, providePrograms } from '@weir/testkit';
import type { L4Options } from '../arguments.ts';
import { startBulkSource } from '../backends/bulk-source.ts';
import { startNginx } from '../backends/nginx.ts';
import { turnsFor } from '../measure/turns.ts';
import { machine } from '../report/machine.ts';
import { type Reading, reasonNotToKeep, type ScenarioResult } from '../report/result.ts';
import { tableFor } from '../report/table.ts';
import { workTree } from '../report/work-tree.ts';
import { writeResult } from '../report/write-result.ts';
import { startSubject } from '../subjects/start-subject.ts';
import { Contender } from './contender.ts';
import { type Scenario, scenarios } from './scenario.ts';

/** Returns the exit code; throws when a run is not valid. */
export async function benchmarkL4(options: L4Options, signal: AbortSignal): Promise<number> {
  const versions = await provide(options);
  const at = new Date();
  const tree = workTree();
  await using cleanup = new AsyncDisposableStack();
  const nginx = cleanup.use(await startNginx());
  const source = cleanup.use(await startBulkSource());
  const contenders: Contender[] = [];
  for (const name of options.subjects) {
    const ports = { answers: nginx.port, bulk: source.port };
    contenders.push(new Contender(cleanup.use(await startSubject(name, ports, options))));
  }
  for (const contender of contenders) await contender.prove();

  const results: ScenarioResult[] = [];
  for (const scenario of scenarios) results.push(await measure(scenario, contenders, { ...options, signal }));
  const result = {
    at: at.toISOString(),
    ...tree,
    machine: machine(),
    versions,
    pairs: options.pairs,
    seconds: options.seconds,
    subjects: contenders.map(({ subject: { name, description } }) => ({ name, description })),
    scenarios: results,
  };
  console.log(tableFor(result));
  const reason = reasonNotToKeep(options);
  console.log(reason === undefined ? `\nwritten to ${writeResult('l4', result)}` : `\nnot written: ${reason}`);
  return 0;
}

async function provide({ subjects }: L4Options): Promise<Record<string, string>> {
  const needed: ProgramName[] = subjects.includes('haproxy') ? ['nginx', 'wrk', 'haproxy'] : ['nginx', 'wrk'];
  const programs = await providePrograms(needed);
  const versions = programs.map((program) => {
    if (program.kind === 'available') return [program.name, program.version];
    throw new Error(`${program.name} is missing (${program.reason}); to get it: ${program.remedy}`);
  });
  return Object.fromEntries(versions);
}

async function measure(
  scenario: Scenario,
  contenders: readonly Contender[],
  { pairs, seconds, signal }: L4Options & { readonly signal: AbortSignal },
): Promise<ScenarioResult> {
  const readings = new Map<Contender, Reading[]>(contenders.map((contender) => [contender, []]));
  const say = (text: string): void => console.error(`bench: ${scenario.name}: ${text}`);
  say('warming up');
  for (const contender of contenders) await contender.run(scenario, seconds);
  for (const [round, turns] of turnsFor(contenders, pairs).entries()) {
    for (const contender of turns) {
      signal.throwIfAborted();
      readings.get(contender)?.push(await contender.run(scenario, seconds));
    }
    const figures = [...readings].map(([{ subject }, all]) => `${subject.name} ${all.at(-1)?.figure.toFixed(1)}`);
    say(`round ${round + 1} of ${pairs}: ${figures.join(', ')}`);
  }
  for (const contender of contenders) await contender.audit();
  const { name, unit, bar } = scenario;
  return {
    name,
    unit,
    bar,
    readings: Object.fromEntries([...readings].map(([{ subject }, all]) => [subject.name, all])),
  };
}
