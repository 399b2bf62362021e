import { setTimeout } from 'node:timers/promises';
import { runGenerator, runOpenLoop } from '../load/generators.ts';
import type { BackendPorts } from '../subjects/subject.ts';
import { RESTRICTIVE_LIMITS } from '../subjects/weir-manifests.ts';

/** Rate of the measured tenant's messages. Low enough that a worker which is fair to tenants can relay all messages during any flood. */
const MESSAGES_PER_SECOND = 1_000;
const VICTIM_CONNECTIONS = 16;
/** The flood starts this long before the measured tenant's first message. */
const FLOOD_HEAD_START_MS = 500;
/** The flood lasts this much longer than the measurement, so that the flood ends after the last response. */
const FLOOD_OVERLAP_SECONDS = 2;

/** Percentiles of the tenant's latencies, in µs. `floodSummary` describes how much of the flood the proxy relayed. */
export type VictimLatency = { readonly p50: number; readonly p99: number; readonly floodSummary: string };

/** Measures the latency of a tenant at a low rate, while `flood` loads the ports `flooded`. Without `flooded` there is no flood. */
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
  const [report, floodSummary] = await Promise.all([
    runOpenLoop({ port: victim.echo, rate: MESSAGES_PER_SECOND, seconds, connections: VICTIM_CONNECTIONS }),
    flooding,
  ]);
  if (report.kind === 'overloaded') {
    return { p50: Number.POSITIVE_INFINITY, p99: Number.POSITIVE_INFINITY, floodSummary };
  }
  return { p50: report.p50, p99: report.p99, floodSummary };
}

/** The load of the other tenant. `run` resolves with a text about how much was relayed, because a proxy may refuse or throttle the load. */
export type Flood = {
  readonly title: string;
  run(ports: BackendPorts, seconds: number): Promise<string>;
};

type StreamFloodReport = { readonly bytes: number };
type ConnectionFloodReport = { readonly started: number; readonly answered: number };
const FLOOD_STREAMS = 16;
const FLOOD_CONNECTIONS_PER_SECOND = 10 * RESTRICTIVE_LIMITS.newConnectionsPerSecond;

/** The kinds of flood. Each kind offers at least ten times the load that `RESTRICTIVE_LIMITS` allow. */
export const FLOODS: readonly Flood[] = [
  {
    title: `${FLOOD_STREAMS} streams`,
    run: async ({ stream }, seconds) => {
      const program = new URL('../load/bulk-flood-process.ts', import.meta.url);
      const { bytes } = await runGenerator<StreamFloodReport>(program, [stream, seconds, FLOOD_STREAMS]);
      return `${Math.round((bytes * 8) / 1e6 / seconds)} Mbit/s`;
    },
  },
  {
    title: `${FLOOD_CONNECTIONS_PER_SECOND} connections a second`,
    run: async ({ http }, seconds) => {
      const program = new URL('../load/connect-flood-process.ts', import.meta.url);
      const { started, answered } = await runGenerator<ConnectionFloodReport>(program, [
        http,
        seconds,
        FLOOD_CONNECTIONS_PER_SECOND,
      ]);
      return `${answered} of ${started} answered`;
    },
  },
];
