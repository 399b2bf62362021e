import { setTimeout } from 'node:timers/promises';
import { runOpenLoop } from '../load/open-loop.ts';
import type { Ports } from '../subjects/subject.ts';
import type { Flood } from './flood.ts';

/** Little enough that a worker which is fair has room for it beside any flood. */
const rate = 1_000;
const connections = 16;
/** The flood is there when the first message goes, and still when the last has come back. */
const headStartMs = 500;
const overlapSeconds = 2;

/** In µs; `flood`: what came of it, in words. */
export type Latency = { readonly p50: number; readonly p99: number; readonly flood: string };

/** The latency of a tenant that does little, while the flood runs through `flooded`; absent: nobody floods. */
export async function latencyDuring(
  { flood, flooded, seconds }: { readonly flood: Flood; readonly flooded: Ports | undefined; readonly seconds: number },
  victim: Ports,
): Promise<Latency> {
  const flooding = flooded === undefined ? Promise.resolve('') : flood.run(flooded, seconds + overlapSeconds);
  if (flooded !== undefined) await Promise.race([setTimeout(headStartMs), flooding]);
  const [report, outcome] = await Promise.all([
    runOpenLoop({ port: victim.echo, rate, seconds, connections }),
    flooding,
  ]);
  if (report.kind === 'overloaded')
    return { p50: Number.POSITIVE_INFINITY, p99: Number.POSITIVE_INFINITY, flood: outcome };
  return { p50: report.p50, p99: report.p99, flood: outcome };
}
