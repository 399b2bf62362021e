import type { Counters } from '@weir/model/data-plane';

/** Encodes counters as a list: received bytes, sent bytes, connections, requests. */
export function encodeCounters({ receivedBytes, sentBytes, connections, requests }: Counters): number[] {
  return [receivedBytes, sentBytes, connections, requests];
}

/** Decodes the list of `encodeCounters`. Returns undefined unless the list has four non-negative integers. */
export function decodeCounters(numbers: readonly unknown[]): Counters | undefined {
  if (numbers.length !== 4 || !numbers.every(isAmount)) return undefined;
  const [receivedBytes = 0, sentBytes = 0, connections = 0, requests = 0] = numbers as number[];
  return { receivedBytes, sentBytes, connections, requests };
}

/**
 * Reports whether a value is a non-negative integer. Accepts sums above 2^53 although they are inexact, because the ledger may contain
 * them.
 */
function isAmount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}
