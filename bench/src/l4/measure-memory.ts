import { setTimeout } from 'node:timers/promises';
import type { Reading, ScenarioReadings } from '../comparison/comparison-result.ts';
import type { ComparisonRun } from '../comparison/comparison-run.ts';
import { measureRounds } from '../comparison/rounds.ts';
import { openIdleConnections } from '../load/generators.ts';
import { descriptorLimit, maxIdleConnections, residentKiB } from '../measure/proc-stats.ts';
import type { BackendName, SelectableSubjectName, StartableSubjectName } from '../subjects/subject.ts';

/** Few rounds, because one round takes about ten seconds for each subject, and memory varies less than CPU time. */
const MAX_ROUNDS = 3;
/** Connections that are opened and closed before the measurement. They allocate memory that later connections reuse. */
const WARM_UP_CONNECTIONS = 200;
const SETTLE_MS = 2_000;
const MAX_KIB_PER_CONNECTION = 2;

type L4Run = ComparisonRun<BackendName, StartableSubjectName>;

type MemoryReading = { readonly growth: Reading; readonly whole: Reading };

/** Measures by how much the process of a subject grows for each idle connection. Every round starts a new process of each subject. */
export async function measureMemory(run: L4Run): Promise<ScenarioReadings[]> {
  const connections = maxIdleConnections(descriptorLimit());
  const name = `${connections} idle connections`;
  const readings = await measureRounds<BackendName, MemoryReading>(run, {
    title: name,
    subjects: await run.sharedSubjects('echo'),
    rounds: Math.min(MAX_ROUNDS, run.options.rounds),
    warmUps: 0,
    measure: ({ subject }) => measureFreshSubject(run, subject.name as SelectableSubjectName, connections),
    format: ({ growth, whole }) => `${growth.figure.toFixed(1)} (${whole.figure.toFixed(0)} MiB)`,
  });
  const readingsOf = (figure: keyof MemoryReading): ScenarioReadings['readings'] =>
    Object.fromEntries([...readings].map(([subject, list]) => [subject, list.map((reading) => reading[figure])]));
  return [
    {
      name,
      unit: 'KiB of growth for each',
      targets: {},
      maxFigure: MAX_KIB_PER_CONNECTION,
      readings: readingsOf('growth'),
    },
    { name, unit: 'MiB of the whole process', targets: {}, readings: readingsOf('whole') },
  ];
}

async function measureFreshSubject(
  run: L4Run,
  name: SelectableSubjectName,
  connections: number,
): Promise<MemoryReading> {
  await using during = new AsyncDisposableStack();
  const fresh = await run.startSubject(name, during, { isInspected: true });
  await fresh.verifyRelay('echo');
  const { pid, ports, collectGarbage } = fresh.subject;
  const settle = async (): Promise<void> => {
    await setTimeout(SETTLE_MS);
    await collectGarbage?.();
  };
  await (await openIdleConnections(ports.echo, WARM_UP_CONNECTIONS))[Symbol.asyncDispose]();
  await settle();
  const beforeKiB = residentKiB(pid);
  const { userMs, systemMs } = await fresh.withCpuTime(async () => {
    during.use(await openIdleConnections(ports.echo, connections));
    await settle();
  });
  const afterKiB = residentKiB(pid);
  return {
    growth: { userMs, systemMs, figure: (afterKiB - beforeKiB) / connections },
    whole: { userMs, systemMs, figure: afterKiB / 1024 },
  };
}
