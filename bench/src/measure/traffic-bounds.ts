import type { TrafficTotals } from '../subjects/subject.ts';

/** Minimum and maximum of each counter in a ledger. The minimum differs from the maximum if the clients do not know the exact traffic. */
export type TrafficBounds = Readonly<Record<keyof TrafficTotals, CountRange>>;

type CountRange = { readonly min: number; readonly max: number };

const COUNTERS = ['receivedBytes', 'sentBytes', 'connections'] as const;

export const NO_TRAFFIC: TrafficBounds = exactTraffic({ receivedBytes: 0, sentBytes: 0, connections: 0 });

export function exactTraffic(totals: TrafficTotals): TrafficBounds {
  return trafficBetween(totals, totals);
}

export function trafficBetween(min: TrafficTotals, max: TrafficTotals): TrafficBounds {
  return mapCounters((counter) => ({ min: min[counter], max: max[counter] }));
}

export function addTraffic(a: TrafficBounds, b: TrafficBounds): TrafficBounds {
  return mapCounters((counter) => ({
    min: a[counter].min + b[counter].min,
    max: a[counter].max + b[counter].max,
  }));
}

/** Returns a description of each counter that is out of bounds. */
export function ledgerDifferences(metered: TrafficTotals, bounds: TrafficBounds): string[] {
  return COUNTERS.filter(
    (counter) => metered[counter] < bounds[counter].min || metered[counter] > bounds[counter].max,
  ).map((counter) => `${counter} is ${metered[counter]} instead of ${formatRange(bounds[counter])}`);
}

function formatRange({ min, max }: CountRange): string {
  return min === max ? `${min}` : `${min} to ${max}`;
}

function mapCounters(range: (counter: keyof TrafficTotals) => CountRange): TrafficBounds {
  return {
    receivedBytes: range('receivedBytes'),
    sentBytes: range('sentBytes'),
    connections: range('connections'),
  };
}
