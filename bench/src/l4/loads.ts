import { cpuMicrosecondsPerUnit, type Load, type LoadResult, runWrkLoad } from '../comparison/load.ts';
import type { OpenLoop } from '../comparison/measure-latency.ts';
import { downloadBulk } from '../load/bulk-stream.ts';
import { STREAM_DATAGRAM_BYTES } from '../load/datagram-stream.ts';
import { MESSAGE_BYTES } from '../load/echo-connection.ts';
import {
  type DatagramReport,
  datagramReportErrors,
  datagramStreamErrors,
  type OpenLoopReport,
  runDatagramStream,
  runDatagrams,
  runOpenLoop,
} from '../load/generators.ts';
import { exactTraffic, type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import type { BackendName, TrafficTotals } from '../subjects/subject.ts';

type L4Load = Load<BackendName>;

export const keepAliveRequests: L4Load = {
  title: 'kept connections',
  unit: 'µs of CPU per request',
  backend: 'http',
  run: (port, seconds) => runWrkLoad({ port, seconds, connections: 64, headers: [] }),
  figure: cpuMicrosecondsPerUnit,
};

export const oneConnectionPerRequest: L4Load = {
  title: 'one connection per request',
  unit: 'µs of CPU per connection',
  backend: 'http',
  run: (port, seconds) => runWrkLoad({ port, seconds, connections: 32, headers: ['Connection: close'] }),
  figure: cpuMicrosecondsPerUnit,
};

/**
 * How many bytes to download per second of the requested duration. Every subject relays about twice as much per second on one core, so the
 * download takes about half of the duration.
 */
const STREAM_BYTES_PER_SECOND = 500e6;

export const oneStream: L4Load = {
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

export const udpRoundTrips: L4Load = {
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

export const udpStream: L4Load = {
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

const ECHO_CONNECTIONS = 64;

/** The open loop of `latency`: messages of 64 bytes that the backend echoes. */
export const echoLoop: OpenLoop<BackendName> = {
  backend: 'echo',
  unit: 'messages',
  run: (port, options) => runOpenLoop({ port, connections: ECHO_CONNECTIONS, ...options }),
  trafficOf: messageTraffic,
};

function messageTraffic(report: OpenLoopReport): TrafficBounds {
  const [min, max] = report.kind === 'measured' ? [report.messages, report.messages] : [report.echoed, report.sent];
  const totalsOf = (messages: number): TrafficTotals => {
    const bytes = messages * MESSAGE_BYTES;
    return { receivedBytes: bytes, sentBytes: bytes, connections: ECHO_CONNECTIONS };
  };
  return trafficBetween(totalsOf(min), totalsOf(max));
}
