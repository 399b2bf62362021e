import type { Clock } from '@weir/runtime';

/** However often it is started, there is one, from the first time on. */
export function createSingleTimer(clock: Clock, ms: number, then: () => void): { start(): void; cancel(): void } {
  let timer: ReturnType<Clock['setTimeout']> | undefined;
  return {
    start() {
      timer ??= clock.setTimeout(() => {
        timer = undefined;
        then();
      }, ms);
    },
    cancel: () => timer?.cancel(),
  };
}
