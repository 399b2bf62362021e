import { takeBulk } from '../load/bulk-sink.ts';
import { runWrk, type WrkOptions } from '../load/wrk.ts';
import { complaintsAbout, type WrkReport } from '../load/wrk-report.ts';
import { between, exactly, type Moved } from '../measure/moved.ts';
import type { Ports } from '../subjects/subject.ts';

/** One kind of load, and the figure that it gives. */
export type Scenario = {
  readonly name: string;
  readonly unit: string;
  readonly backend: keyof Ports;
  /** How many times HAProxy's figure Weir's may be. */
  readonly bar: number;
  run(port: number, seconds: number): Promise<Load>;
  figure(cpuMs: number, load: Load): number;
};

export type Load = {
  /** Requests, connections or bytes. */
  readonly count: number;
  readonly ms: number;
  readonly moved: Moved;
  /** What makes it invalid, in words. */
  readonly complaints: readonly string[];
};

const microseconds = (cpuMs: number, { count }: Load): number => (cpuMs * 1000) / count;

export const scenarios: readonly Scenario[] = [
  {
    name: 'kept connections',
    unit: 'µs of CPU per request',
    backend: 'answers',
    bar: 1.0,
    run: (port, seconds) => request({ port, seconds, connections: 64, headers: [] }),
    figure: microseconds,
  },
  {
    name: 'one connection per request',
    unit: 'µs of CPU per connection',
    backend: 'answers',
    bar: 1.5,
    run: (port, seconds) => request({ port, seconds, connections: 32, headers: ['Connection: close'] }),
    figure: microseconds,
  },
  {
    name: 'one stream',
    unit: 'CPU-ms per GB',
    backend: 'bulk',
    bar: 0.6,
    run: stream,
    figure: (cpuMs, { count }) => cpuMs / (count / 1e9),
  },
];

async function request(options: WrkOptions): Promise<Load> {
  const report = await runWrk(options);
  return {
    count: report.requests,
    ms: report.microseconds / 1000,
    moved: movedBy(report, options),
    complaints: complaintsAbout(report),
  };
}

/** wrk leaves in the middle: each connection may have a request under way that it does not count. */
export function movedBy({ requests, bytes, requestBytes }: WrkReport, { connections, headers }: WrkOptions): Moved {
  const isKept = headers.length === 0;
  const answerBytes = Math.ceil(bytes / Math.max(1, requests));
  const counted = { receivedBytes: requests * requestBytes, sentBytes: bytes };
  const underWay = { receivedBytes: connections * requestBytes, sentBytes: connections * answerBytes };
  return between(
    { ...counted, connections: isKept ? connections : requests },
    {
      receivedBytes: counted.receivedBytes + underWay.receivedBytes,
      sentBytes: counted.sentBytes + underWay.sentBytes,
      // and one with which wrk tries the address before it begins
      connections: connections + 1 + (isKept ? 0 : requests),
    },
  );
}

/** So much for each second of a turn: about half of what one core relays, whoever it is. */
const bytesPerSecond = 500e6;

async function stream(port: number, seconds: number): Promise<Load> {
  const bytes = seconds * bytesPerSecond;
  const { requestBytes, ms } = await takeBulk(port, bytes);
  const moved = exactly({ receivedBytes: requestBytes, sentBytes: bytes, connections: 1 });
  return { count: bytes, ms, moved, complaints: [] };
}
