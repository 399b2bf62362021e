import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import type { DatagramStreamReport } from './datagram-stream.ts';

/** Runs a load generator to its end and returns its report. If the generator prints no report, throws the generator's error message. */
export async function runGenerator<T>(program: URL, args: readonly (number | string)[]): Promise<T> {
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
    const [error] = /^\w*Error: .*$/m.exec(generator.output()) ?? ['no report'];
    throw new Error(`the generator failed: ${error}`);
  }
  return JSON.parse(json) as T;
}

export type OpenLoopReport =
  /** The generator stopped because too many messages were pending. */
  | { readonly kind: 'overloaded'; readonly sent: number; readonly echoed: number; readonly receivedBytes: number }
  | {
      readonly kind: 'measured';
      /** Number of echoed messages, including the messages of the warm-up. `counted` excludes the warm-up. */
      readonly messages: number;
      readonly counted: number;
      /** Bytes of all echoes or responses. */
      readonly receivedBytes: number;
      readonly ms: number;
      /** Percentiles of the latencies, in µs. */
      readonly p50: number;
      readonly p99: number;
    };

export type OpenLoopOptions = {
  readonly port: number;
  /** Messages per second on all connections together. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
  /** An HTTP/1.1 request, and the body of its responses. Absent for messages to an echo backend. */
  readonly request?: { readonly text: string; readonly expectedBody: string };
};

/**
 * Sends messages of 64 bytes to an echo backend, or requests to an HTTP backend, at a fixed rate. Throws if an echoed byte or a response is
 * wrong or missing.
 */
export function runOpenLoop({ port, rate, seconds, connections, request }: OpenLoopOptions): Promise<OpenLoopReport> {
  const content = request === undefined ? [] : [request.text, request.expectedBody];
  return runGenerator(new URL('./open-loop-process.ts', import.meta.url), [
    port,
    rate,
    seconds,
    connections,
    ...content,
  ]);
}

export type TlsConnectionsReport = {
  readonly connections: number;
  /** Number of connections that resumed an earlier session (RFC 8446 §2.2). */
  readonly resumed: number;
  readonly ms: number;
  /** Bytes of all requests and of all responses, without TLS. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
};

export type TlsConnectionsOptions = {
  readonly port: number;
  readonly seconds: number;
  /** Number of connections that are open at the same time. */
  readonly connections: number;
  readonly resumes: boolean;
  /** A request with `Connection: close`. */
  readonly request: { readonly text: string; readonly expectedBody: string };
};

/** Opens TLS connections with one request each. Throws if a response is wrong or missing. */
export function runTlsConnections(options: TlsConnectionsOptions): Promise<TlsConnectionsReport> {
  const { port, seconds, connections, resumes, request } = options;
  const program = new URL('./tls-connections-process.ts', import.meta.url);
  return runGenerator(program, [port, seconds, connections, resumes ? 1 : 0, request.text, request.expectedBody]);
}

export type DatagramReport = {
  readonly sent: number;
  readonly roundTrips: number;
  /** Number of received datagrams that were not the expected echo. */
  readonly corrupted: number;
  readonly lost: number;
  readonly ms: number;
  readonly messageBytes: number;
};

export type DatagramOptions = { readonly port: number; readonly seconds: number; readonly flows: number };
/** Source addresses that runs use in turn. With a single address, a reused ephemeral port could continue the flow of an earlier run. */
const SOURCE_ADDRESSES = 250;
let runCount = 0;

/** Runs round trips on UDP flows. Each flow has one pending datagram at a time. */
export function runDatagrams({ port, seconds, flows }: DatagramOptions): Promise<DatagramReport> {
  const source = 1 + (runCount++ % SOURCE_ADDRESSES);
  return runGenerator(new URL('./datagram-process.ts', import.meta.url), [port, seconds, flows, source]);
}

/**
 * A run with a higher share of lost datagrams is invalid, because the proxy used CPU time for the lost datagrams, but the figure does not
 * count these datagrams.
 */
const MAX_LOSS_RATIO = 0.001;

/** Returns the reasons why a run is invalid; empty if the run is valid. */
export function datagramReportErrors({ sent, roundTrips, corrupted, lost }: DatagramReport): string[] {
  return [
    ...(roundTrips === 0 ? ['no datagram came back'] : []),
    ...(corrupted > 0 ? [`${corrupted} echoed datagrams differ from the sent datagrams`] : []),
    ...(lost > sent * MAX_LOSS_RATIO ? [`${lost} of ${sent} datagrams were lost`] : []),
  ];
}

/** Sends datagrams on UDP flows at a fixed rate, one way. The backend counts the datagrams that arrive. */
export function runDatagramStream(options: DatagramOptions & { readonly rate: number }): Promise<DatagramStreamReport> {
  const { port, seconds, flows, rate } = options;
  const source = 1 + (runCount++ % SOURCE_ADDRESSES);
  const program = new URL('./datagram-stream-process.ts', import.meta.url);
  return runGenerator(program, [port, seconds, flows, source, rate]);
}

/** Higher than for round trips, because a stream does not slow down while another program uses the CPU. */
const MAX_STREAM_LOSS_RATIO = 0.01;

/** Returns the reasons why a run is invalid; empty if the run is valid. */
export function datagramStreamErrors({ sent, arrived }: DatagramStreamReport): string[] {
  const lost = sent - arrived;
  return lost > sent * MAX_STREAM_LOSS_RATIO ? [`${lost} of ${sent} datagrams were lost`] : [];
}

const IDLE_CONNECTIONS_PROGRAM = fileURLToPath(new URL('./idle-connections-process.ts', import.meta.url));

/** Opens connections. Resolves when all connections are open and idle. Disposing the result closes the connections. */
export function openIdleConnections(port: number, connections: number): Promise<AsyncDisposable> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', IDLE_CONNECTIONS_PROGRAM, String(port), String(connections)],
    name: 'idle connections',
    readyWhen: /^open$/m,
    readyTimeoutMs: 60_000,
    mayExit: true,
  });
}
