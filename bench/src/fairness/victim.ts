import { setTimeout } from 'node:timers/promises';
import { runOpenLoop } from '../load/open-loop.ts';
import type { BackendPorts } from '../subjects/subject.ts';
import type { Flood } from './flood.ts';

/** Little enough that a worker which is fair has room for it beside any flood. */
const MESSAGES_PER_SECOND = 1_000;
const VICTIM_CONNECTIONS = 16;
/** The flood is there when the first message goes, and still when the last has come back. */
const FLOOD_HEAD_START_MS = 500;
const FLOOD_OVERLAP_SECONDS = 2;

/** In µs; `flood`: what came of it, in words. */
export type VictimLatency = { readonly p50: number; readonly p99: number; readonly floodSummary: string };

/** The latency of a tenant that does little, while the flood runs through `flooded`; absent: nobody floods. */
export async function measureVictimLatency(
  {
    flood,
    flooded,
    seconds,
  }: { readonly flood: Flood; readonly flooded: BackendPorts | undefined; readonly seconds: number },
  victim: BackendPorts,
): Promise<VictimLatency> {
  const flooding = flooded === undefined ? Promise.resolve('') : flood.run(flooded, seconds + FLOOD_OVERLAP_SECONDS);
  if (flooded !== undefined) await Promise.race([setTimeout(FLOOD_HEAD_START_MS), flooding]);
  const [report, outcome] = await Promise.all([
    runOpenLoop({ port: victim.echo, rate: MESSAGES_PER_SECOND, seconds, connections: VICTIM_CONNECTIONS }),
    flooding,
  ]);
  if (report.kind === 'overloaded')
    return { p50: Number.POSITIVE_INFINITY, p99: Number.POSITIVE_INFINITY, floodSummary: outcome };
  return { p50: report.p50, p99: report.p99, floodSummary: outcome };
}
