import { runGenerator } from './run-generator.ts';

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
