import { downloadBulk } from '../load/bulk-stream.ts';
import { STREAM_DATAGRAM_BYTES } from '../load/datagram-stream.ts';
import {
  type DatagramReport,
  datagramReportErrors,
  datagramStreamErrors,
  runDatagramStream,
  runDatagrams,
} from '../load/generators.ts';
import { runWrk, type WrkOptions, type WrkReport, wrkReportErrors } from '../load/wrk.ts';
import { exactTraffic, type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import type { BackendName } from '../subjects/subject.ts';

/** One kind of load. `run` applies the load to a port, and `figure` computes the figure from the result and the CPU time. */
export type Load = {
  readonly title: string;
  readonly unit: string;
  readonly backend: BackendName;
  run(port: number, seconds: number): Promise<LoadResult>;
  figure(cpuMs: number, loaded: LoadResult): number;
};

export type LoadResult = {
  /** Number of requests, connections, bytes or round trips, depending on the load. */
  readonly count: number;
  readonly ms: number;
  readonly traffic: TrafficBounds;
  /** The reasons why the result is invalid; empty if the result is valid. */
  readonly errors: readonly string[];
};

export function cpuMicrosecondsPerUnit(cpuMs: number, { count }: LoadResult): number {
  return (cpuMs * 1000) / count;
}

export const keepAliveRequests: Load = {
  title: 'kept connections',
  unit: 'µs of CPU per request',
  backend: 'http',
  run: (port, seconds) => runWrkLoad({ port, seconds, connections: 64, headers: [] }),
  figure: cpuMicrosecondsPerUnit,
};

export const oneConnectionPerRequest: Load = {
  title: 'one connection per request',
  unit: 'µs of CPU per connection',
  backend: 'http',
  run: (port, seconds) => runWrkLoad({ port, seconds, connections: 32, headers: ['Connection: close'] }),
  figure: cpuMicrosecondsPerUnit,
};

async function runWrkLoad(options: WrkOptions): Promise<LoadResult> {
  const report = await runWrk(options);
  return {
    count: report.requests,
    ms: report.microseconds / 1000,
    traffic: wrkTraffic(report, options),
    errors: wrkReportErrors(report),
  };
}

/** Returns the traffic of a run of wrk: a range, because wrk does not count the requests that are in progress when it stops. */
export function wrkTraffic(
  { requests, bytes, requestBytes }: WrkReport,
  { connections, headers }: WrkOptions,
): TrafficBounds {
  const isKeepAlive = headers.length === 0;
  const responseBytes = Math.ceil(bytes / Math.max(1, requests));
  const counted = { receivedBytes: requests * requestBytes, sentBytes: bytes };
  const inProgress = { receivedBytes: connections * requestBytes, sentBytes: connections * responseBytes };
  return trafficBetween(
    { ...counted, connections: isKeepAlive ? connections : requests },
    {
      receivedBytes: counted.receivedBytes + inProgress.receivedBytes,
      sentBytes: counted.sentBytes + inProgress.sentBytes,
      // wrk opens one more connection before the run, to test the address
      connections: connections + 1 + (isKeepAlive ? 0 : requests),
    },
  );
}

/**
 * How many bytes to download per second of the requested duration. Every subject relays about twice as much per second on one core, so the
 * download takes about half of the duration.
 */
const STREAM_BYTES_PER_SECOND = 500e6;

export const oneStream: Load = {
  title: 'one stream',
  unit: 'CPU-ms per GB',
  backend: 'stream',
  run: runStream,
  figure: (cpuMs, { count }) => cpuMs / (count / 1e9),
};

async function runStream(port: number, seconds: number): Promise<LoadResult> {
  const bytes = seconds * STREAM_BYTES_PER_SECOND;
  const { requestBytes, ms } = await downloadBulk(port, bytes);
  const traffic = exactTraffic({ receivedBytes: requestBytes, sentBytes: bytes, connections: 1 });
  return { count: bytes, ms, traffic, errors: [] };
}

const UDP_FLOWS = 64;

export const udpRoundTrips: Load = {
  title: 'UDP round trips',
  unit: 'µs of CPU per round trip',
  backend: 'datagrams',
  run: runRoundTrips,
  figure: cpuMicrosecondsPerUnit,
};

async function runRoundTrips(port: number, seconds: number): Promise<LoadResult> {
  const report = await runDatagrams({ port, seconds, flows: UDP_FLOWS });
  return {
    count: report.roundTrips,
    ms: report.ms,
    traffic: datagramTraffic(report, UDP_FLOWS),
    errors: datagramReportErrors(report),
  };
}

/** Returns the traffic of UDP round trips: a range, because datagrams may be lost before or after the proxy counts them. */
export function datagramTraffic({ sent, roundTrips, messageBytes }: DatagramReport, flowCount: number): TrafficBounds {
  const back = roundTrips * messageBytes;
  const there = sent * messageBytes;
  return trafficBetween(
    { receivedBytes: back, sentBytes: back, connections: flowCount },
    { receivedBytes: there, sentBytes: there, connections: flowCount },
  );
}

const STREAM_FLOWS = 16;
const STREAM_DATAGRAMS_PER_SECOND = 40_000;

export const udpStream: Load = {
  title: 'UDP one way',
  unit: 'µs of CPU per datagram',
  backend: 'datagrams',
  run: runUdpStream,
  figure: cpuMicrosecondsPerUnit,
};

async function runUdpStream(port: number, seconds: number): Promise<LoadResult> {
  const report = await runDatagramStream({ port, seconds, flows: STREAM_FLOWS, rate: STREAM_DATAGRAMS_PER_SECOND });
  const { arrived, ms, traffic } = report;
  // The lower bound is for datagrams that are lost before the proxy counts them.
  const sent = { receivedBytes: traffic.sentBytes, sentBytes: traffic.receivedBytes, connections: STREAM_FLOWS };
  const lostBytes = (report.sent - arrived) * STREAM_DATAGRAM_BYTES;
  return {
    count: arrived,
    ms,
    traffic: trafficBetween({ ...sent, receivedBytes: sent.receivedBytes - lostBytes }, sent),
    errors: datagramStreamErrors(report),
  };
}
