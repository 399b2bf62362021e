import type { OpenLoop } from '../comparison/measure-latency.ts';
import { MESSAGE_BYTES } from '../load/echo-connection.ts';
import { type OpenLoopReport, runOpenLoop } from '../load/generators.ts';
import { type TrafficBounds, trafficBetween } from '../measure/traffic-bounds.ts';
import type { BackendName, TrafficTotals } from '../subjects/subject.ts';

const CONNECTIONS = 64;

/** The open loop of `latency`: messages of 64 bytes that the backend echoes. */
export const echoLoop: OpenLoop<BackendName> = {
  backend: 'echo',
  unit: 'messages',
  run: (port, options) => runOpenLoop({ port, connections: CONNECTIONS, ...options }),
  trafficOf: messageTraffic,
};

function messageTraffic(report: OpenLoopReport): TrafficBounds {
  const [min, max] = report.kind === 'measured' ? [report.messages, report.messages] : [report.echoed, report.sent];
  const totalsOf = (messages: number): TrafficTotals => {
    const bytes = messages * MESSAGE_BYTES;
    return { receivedBytes: bytes, sentBytes: bytes, connections: CONNECTIONS };
  };
  return trafficBetween(totalsOf(min), totalsOf(max));
}
