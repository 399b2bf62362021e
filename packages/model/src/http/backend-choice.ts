import type { HttpBackend } from './route.ts';

/**
 * Chooses a backend with a probability in proportion to its weight. `random` is in [0, 1). Returns undefined if no backend has a weight
 * above 0. A valid route has at most 64 backends of weight 1,000,000, so the sum of the weights is exact.
 */
export function chooseBackend<B extends Pick<HttpBackend, 'weight'>>(
  backends: readonly B[],
  random: number,
): B | undefined {
  let sum = 0;
  for (const { weight } of backends) sum += weight;
  // A whole number, so that rounding never chooses a backend of weight 0: `ticket` is less than `sum` for every `random` below 1.
  let ticket = Math.floor(random * sum);
  for (const backend of backends) {
    if (ticket < backend.weight) return backend;
    ticket -= backend.weight;
  }
  return undefined;
}
