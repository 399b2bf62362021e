import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

/** One of our generators to its end; returns what it reports on a line of its own. Throws with its last line when it does not. */
export async function runGenerator<T>(program: URL, args: readonly number[]): Promise<T> {
  const file = fileURLToPath(program);
  await using generator = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', file, ...args.map(String)],
    name: basename(file),
    mayExit: true,
  });
  await generator.exited;
  const [, json] = /^report (\{.*\})$/m.exec(generator.stdout()) ?? [];
  if (json === undefined) {
    const [error] = /^\w*Error: .*$/m.exec(generator.output()) ?? ['it ended without a report'];
    throw new Error(`the generator failed: ${error}`);
  }
  return JSON.parse(json) as T;
}

export type OpenLoopReport =
  /** So much was behind that it gave up. */
  | { readonly kind: 'overloaded'; readonly sent: number; readonly echoed: number }
  | {
      readonly kind: 'measured';
      /** Sent and come back, those before it began to count included. */
      readonly messages: number;
      readonly counted: number;
      readonly ms: number;
      /** In µs. */
      readonly p50: number;
      readonly p99: number;
    };

export type OpenLoopOptions = {
  readonly port: number;
  /** Messages per second, over all connections. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
};

/** Messages of 64 bytes at a fixed rate to an echo. Throws when a byte comes back wrong, or does not. */
export function runOpenLoop({ port, rate, seconds, connections }: OpenLoopOptions): Promise<OpenLoopReport> {
  return runGenerator(new URL('./open-loop-process.ts', import.meta.url), [port, rate, seconds, connections]);
}

export type DatagramReport = {
  readonly sent: number;
  readonly roundTrips: number;
  /** What came back and was not the datagram that was waited for. */
  readonly foreign: number;
  readonly lost: number;
  readonly ms: number;
  readonly messageBytes: number;
};

export type DatagramOptions = { readonly port: number; readonly seconds: number; readonly flows: number };
/** Each run has a source address of its own: an ephemeral port that comes again within the idle timeout would be the same flow. */
const SOURCE_ADDRESSES = 250;
let runCount = 0;

/** Round trips over so many UDP flows, one datagram of each under way. */
export function runDatagrams({ port, seconds, flows }: DatagramOptions): Promise<DatagramReport> {
  const source = 1 + (runCount++ % SOURCE_ADDRESSES);
  return runGenerator(new URL('./datagram-process.ts', import.meta.url), [port, seconds, flows, source]);
}

/** UDP may lose; one in a thousand is where the figure would begin to count work that came to nothing. */
const MAX_LOSS_RATIO = 0.001;

/** What makes a run invalid, in words; empty when it is fine. */
export function datagramReportErrors({ sent, roundTrips, foreign, lost }: DatagramReport): string[] {
  return [
    ...(roundTrips === 0 ? ['no datagram came back'] : []),
    ...(foreign > 0 ? [`${foreign} datagrams came back that were not as sent`] : []),
    ...(lost > sent * MAX_LOSS_RATIO ? [`${lost} of ${sent} datagrams were lost`] : []),
  ];
}

const IDLE_CONNECTIONS_PROGRAM = fileURLToPath(new URL('./idle-connections-process.ts', import.meta.url));

/** Returns when all connections are open and idle; closing it closes them. */
export function openIdleConnections(port: number, connections: number): Promise<AsyncDisposable> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', IDLE_CONNECTIONS_PROGRAM, String(port), String(connections)],
    name: 'crowd',
    readyWhen: /^open$/m,
    readyTimeoutMs: 60_000,
    mayExit: true,
  });
}
