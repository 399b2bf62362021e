/** Bytes as the client sees them: received = what it sent, sent = what it got. Exact to 2^53. */
export interface Counters {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
  readonly requests: number;
}

export const COUNTER_NAMES = ['receivedBytes', 'sentBytes', 'connections', 'requests'] as const;
export type CounterName = (typeof COUNTER_NAMES)[number];

export const ZERO_COUNTERS: Counters = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0 };

export function addCounters(a: Counters, b: Counters): Counters {
  return combineCounters(a, b, (x, y) => x + y);
}

/** What `later` has beyond `earlier`; never negative: a smaller value is an old report. */
export function counterIncrease(earlier: Counters, later: Counters): Counters {
  return combineCounters(earlier, later, (x, y) => Math.max(0, y - x));
}

/** The larger of each: the newest of cumulative values, in whatever order they come. */
export function maxCounters(a: Counters, b: Counters): Counters {
  return combineCounters(a, b, Math.max);
}

function combineCounters(a: Counters, b: Counters, with_: (x: number, y: number) => number): Counters {
  return {
    receivedBytes: with_(a.receivedBytes, b.receivedBytes),
    sentBytes: with_(a.sentBytes, b.sentBytes),
    connections: with_(a.connections, b.connections),
    requests: with_(a.requests, b.requests),
  };
}
