import { complaintsAboutDatagrams, type DatagramReport, runDatagrams } from '../load/datagrams.ts';
import { between, type Moved } from '../measure/moved.ts';
import { type Load, type Loaded, microsecondsEach } from './load.ts';

const flows = 64;

export const udpRoundTrips: Load = {
  title: 'UDP round trips',
  unit: 'µs of CPU per round trip',
  backend: 'datagrams',
  run: roundTrips,
  figure: microsecondsEach,
};

async function roundTrips(port: number, seconds: number): Promise<Loaded> {
  const report = await runDatagrams({ port, seconds, flows });
  return {
    count: report.roundTrips,
    ms: report.ms,
    moved: movedByDatagrams(report, flows),
    complaints: complaintsAboutDatagrams(report),
  };
}

/** One that was lost may have been lost before the proxy or behind it. */
export function movedByDatagrams({ sent, roundTrips, messageBytes }: DatagramReport, flowCount: number): Moved {
  const back = roundTrips * messageBytes;
  const there = sent * messageBytes;
  return between(
    { receivedBytes: back, sentBytes: back, connections: flowCount },
    { receivedBytes: there, sentBytes: there, connections: flowCount },
  );
}
