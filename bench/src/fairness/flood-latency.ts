import { setTimeout } from 'node:timers/promises';
import { runGenerator, runOpenLoop } from '../load/generators.ts';
import type { BackendPorts } from '../subjects/subject.ts';
import { TIGHT_LIMITS } from '../subjects/weir-manifests.ts';

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

/** What one tenant does to the others; it may be refused or slowed down. Says in words how much of it came through. */
export type Flood = {
  readonly title: string;
  run(ports: BackendPorts, seconds: number): Promise<string>;
};

type StreamFloodReport = { readonly bytes: number };
type ConnectionFloodReport = { readonly begun: number; readonly answered: number };
const FLOOD_STREAMS = 16;
const FLOOD_CONNECTIONS_PER_SECOND = 10 * TIGHT_LIMITS.newConnectionsPerSecond;

/** Ten times what the limited tenant may, or more. */
export const FLOODS: readonly Flood[] = [
  {
    title: `${FLOOD_STREAMS} streams`,
    run: async ({ bulk }, seconds) => {
      const program = new URL('../load/bulk-flood-process.ts', import.meta.url);
      const { bytes } = await runGenerator<StreamFloodReport>(program, [bulk, seconds, FLOOD_STREAMS]);
      return `${Math.round((bytes * 8) / 1e6 / seconds)} Mbit/s`;
    },
  },
  {
    title: `${FLOOD_CONNECTIONS_PER_SECOND} connections a second`,
    run: async ({ answers }, seconds) => {
      const program = new URL('../load/connect-flood-process.ts', import.meta.url);
      const { begun, answered } = await runGenerator<ConnectionFloodReport>(program, [
        answers,
        seconds,
        FLOOD_CONNECTIONS_PER_SECOND,
      ]);
      return `${answered} of ${begun} answered`;
    },
  },
];
