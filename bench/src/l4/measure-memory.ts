import { setTimeout } from 'node:timers/promises';
import { openIdleConnections } from '../load/generators.ts';
import { descriptorLimit, maxIdleConnections, residentKiB } from '../measure/proc-stats.ts';
import type { L4Reading, ScenarioResult } from './l4-result.ts';
import type { L4Run } from './l4-run.ts';
import { measureRounds } from './rounds.ts';

/** Each takes about ten seconds a subject, and memory differs less than time. */
const MAX_ROUNDS = 3;
/** What the first connections need is no part of what each further one does. */
const WARM_UP_CONNECTIONS = 200;
const SETTLE_MS = 2_000;
const MAX_KIB_PER_CONNECTION = 16;

type MemoryReading = { readonly growth: L4Reading; readonly whole: L4Reading };

/** How much a process grows by a crowd of connections on which nothing is said, per connection. Each is fresh in every round. */
export async function measureMemory(stage: L4Run): Promise<ScenarioResult[]> {
  const connections = maxIdleConnections(descriptorLimit());
  const subjects = await stage.sharedSubjects('echo');
  const readings = await measureRounds<MemoryReading>(stage, {
    title: `${connections} idle connections`,
    subjects,
    rounds: Math.min(MAX_ROUNDS, stage.options.pairs),
    warmUps: 0,
    measure: async ({ subject: { name } }) => {
      await using during = new AsyncDisposableStack();
      if (name === 'direct' || name === 'weir-limits' || name === 'weir-2-workers')
        throw new Error(`${name} is no peer`);
      const fresh = await stage.startSubject(name, during, { isInspected: true });
      await fresh.verifyRelay('echo');
      const { pid, ports, collectGarbage } = fresh.subject;
      const settle = async (): Promise<void> => {
        await setTimeout(SETTLE_MS);
        await collectGarbage?.();
      };
      await (await openIdleConnections(ports.echo, WARM_UP_CONNECTIONS))[Symbol.asyncDispose]();
      await settle();
      const beforeKiB = residentKiB(pid);
      const beginAt = performance.now();
      const { userMs, systemMs } = await fresh.withCpuTime(async () => {
        during.use(await openIdleConnections(ports.echo, connections));
        await settle();
      });
      const afterKiB = residentKiB(pid);
      const reading = { userMs, systemMs, count: connections, ms: performance.now() - beginAt };
      return {
        growth: { ...reading, figure: (afterKiB - beforeKiB) / connections },
        whole: { ...reading, figure: afterKiB / 1024 },
      };
    },
    format: ({ growth, whole }) => `${growth.figure.toFixed(1)} (${whole.figure.toFixed(0)} MiB)`,
  });
  const of = (what: keyof MemoryReading): ScenarioResult['readings'] =>
    Object.fromEntries([...readings].map(([name, turns]) => [name, turns.map((turn) => turn[what])]));
  const name = `${connections} idle connections`;
  return [
    { name, unit: 'KiB of growth for each', bars: {}, most: MAX_KIB_PER_CONNECTION, readings: of('growth') },
    { name, unit: 'MiB of the whole process', bars: {}, readings: of('whole') },
  ];
}
