import type { Counters } from '@weir/model/data-plane';

/** Encodes counters as a list: received bytes, sent bytes, connections, requests. */
export function encodeCounters({ receivedBytes, sentBytes, connections, requests }: Counters): number[] {
  return [receivedBytes, sentBytes, connections, requests];
}

/** Decodes the list of `encodeCounters`. Returns undefined unless it has four non-negative integers. */
export function decodeCounters(numbers: readonly unknown[]): Counters | undefined {
  if (numbers.length !== 4 || !numbers.every(isAmount)) return undefined;
  const [receivedBytes = 0, sentBytes = 0, connections = 0, requests = 0] = numbers as number[];
  return { receivedBytes, sentBytes, connections, requests };
}

/** Returns whether a value is an amount. Accepts sums above 2^53, which are not exact but may have been written. */
function isAmount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}
