import { CODE_CLASSES, COUNTER_NAMES, type Counters, countersFrom, counterValues } from '@weir/model/data-plane';

/**
 * Encodes counters as a list: received bytes, sent bytes, connections, requests, and the requests of each code class in
 * the order of `CODE_CLASSES` if any request was counted by code class. Leaves out refusals.
 */
export function encodeCounters(counters: Counters): number[] {
  const values = counterValues(counters);
  return counters.requestsByCodeClass === undefined ? values.slice(0, COUNTER_NAMES.length) : values;
}

/** Decodes the list of `encodeCounters`. Returns undefined unless the list has non-negative integers for all counters. */
export function decodeCounters(numbers: readonly unknown[]): Counters | undefined {
  const hasClasses = numbers.length === COUNTER_NAMES.length + CODE_CLASSES.length;
  if ((!hasClasses && numbers.length !== COUNTER_NAMES.length) || !numbers.every(isAmount)) return undefined;
  return countersFrom(numbers);
}

/**
 * Reports whether a value is a non-negative integer. Accepts sums above 2^53 although they are inexact, because the ledger may contain
 * them.
 */
export function isAmount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}
