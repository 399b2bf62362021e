import type { TrafficTotals } from '../subjects/subject.ts';

/** What was moved, as far as the clients know: exactly, or from `least` to `most`. */
export type TrafficBounds = Readonly<Record<keyof TrafficTotals, CountRange>>;

type CountRange = { readonly least: number; readonly most: number };

const COUNTERS = ['receivedBytes', 'sentBytes', 'connections'] as const;

export const NO_TRAFFIC: TrafficBounds = exactTraffic({ receivedBytes: 0, sentBytes: 0, connections: 0 });

export function exactTraffic(metered: TrafficTotals): TrafficBounds {
  return trafficBetween(metered, metered);
}

export function trafficBetween(least: TrafficTotals, most: TrafficTotals): TrafficBounds {
  return mapCounters((counter) => ({ least: least[counter], most: most[counter] }));
}

export function addTraffic(a: TrafficBounds, b: TrafficBounds): TrafficBounds {
  return mapCounters((counter) => ({
    least: a[counter].least + b[counter].least,
    most: a[counter].most + b[counter].most,
  }));
}

/** Where a ledger differs from what was moved, in words; empty when it does not. */
export function ledgerDifferences(metered: TrafficTotals, moved: TrafficBounds): string[] {
  return COUNTERS.filter(
    (counter) => metered[counter] < moved[counter].least || metered[counter] > moved[counter].most,
  ).map((counter) => `${counter} is ${metered[counter]}, and ${formatRange(moved[counter])} moved`);
}

function formatRange({ least, most }: CountRange): string {
  return least === most ? `${least} were` : `${least} to ${most} were`;
}

function mapCounters(range: (counter: keyof TrafficTotals) => CountRange): TrafficBounds {
  return {
    receivedBytes: range('receivedBytes'),
    sentBytes: range('sentBytes'),
    connections: range('connections'),
  };
}
