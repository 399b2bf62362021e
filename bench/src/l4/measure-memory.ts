import { setTimeout } from 'node:timers/promises';
import { openCrowd } from '../load/crowd.ts';
import { crowdFor, descriptorLimit } from '../measure/descriptors.ts';
import { residentKiB } from '../measure/resident-memory.ts';
import type { Reading, ScenarioResult } from '../report/result.ts';
import { playRounds } from './rounds.ts';
import type { Stage } from './stage.ts';

/** Each takes about ten seconds a subject, and memory differs less than time. */
const mostRounds = 3;
/** What the first connections need is no part of what each further one does. */
const firstConnections = 200;
const settlingMs = 2_000;
const barKiB = 16;

type Turn = { readonly growth: Reading; readonly whole: Reading };

/** How much a process grows by a crowd of connections on which nothing is said, per connection. Each is fresh in every round. */
export async function measureMemory(stage: Stage): Promise<ScenarioResult[]> {
  const connections = crowdFor(descriptorLimit());
  const contenders = await stage.contenders('echo');
  const readings = await playRounds<Turn>(stage, {
    title: `${connections} idle connections`,
    contenders,
    rounds: Math.min(mostRounds, stage.options.pairs),
    warmUps: 0,
    turn: async ({ subject: { name } }) => {
      await using during = new AsyncDisposableStack();
      if (name === 'direct' || name === 'weir-limits' || name === 'weir-2-workers')
        throw new Error(`${name} is no peer`);
      const fresh = await stage.extra(name, during, { isInspected: true });
      await fresh.prove('echo');
      const { pid, ports, collectGarbage } = fresh.subject;
      const settle = async (): Promise<void> => {
        await setTimeout(settlingMs);
        await collectGarbage?.();
      };
      await (await openCrowd(ports.echo, firstConnections))[Symbol.asyncDispose]();
      await settle();
      const beforeKiB = residentKiB(pid);
      const beginAt = performance.now();
      const { userMs, systemMs } = await fresh.charged(async () => {
        during.use(await openCrowd(ports.echo, connections));
        await settle();
      });
      const afterKiB = residentKiB(pid);
      const reading = { userMs, systemMs, count: connections, ms: performance.now() - beginAt };
      return {
        growth: { ...reading, figure: (afterKiB - beforeKiB) / connections },
        whole: { ...reading, figure: afterKiB / 1024 },
      };
    },
    inWords: ({ growth, whole }) => `${growth.figure.toFixed(1)} (${whole.figure.toFixed(0)} MiB)`,
  });
  const of = (what: keyof Turn): ScenarioResult['readings'] =>
    Object.fromEntries([...readings].map(([name, turns]) => [name, turns.map((turn) => turn[what])]));
  const name = `${connections} idle connections`;
  return [
    { name, unit: 'KiB of growth for each', bars: {}, most: barKiB, readings: of('growth') },
    { name, unit: 'MiB of the whole process', bars: {}, readings: of('whole') },
  ];
}
