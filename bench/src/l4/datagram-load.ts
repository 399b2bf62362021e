import { type DatagramReport, datagramReportErrors, runDatagrams } from '../load/datagrams.ts';
import { type TrafficBounds, trafficBetween } from '../measure/moved.ts';
import { cpuMicrosecondsPerUnit, type Load, type LoadResult } from './load.ts';

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

/** One that was lost may have been lost before the proxy or behind it. */
export function datagramTraffic({ sent, roundTrips, messageBytes }: DatagramReport, flowCount: number): TrafficBounds {
  const back = roundTrips * messageBytes;
  const there = sent * messageBytes;
  return trafficBetween(
    { receivedBytes: back, sentBytes: back, connections: flowCount },
    { receivedBytes: there, sentBytes: there, connections: flowCount },
  );
}
