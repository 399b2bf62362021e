/** Time as everything here takes it, so that a test can drive it. */
export interface Clock {
  /** Milliseconds since the epoch: for what people read and other machines compare; it may jump. */
  now(): number;
  /** Milliseconds since some moment of this process: for measuring; it never jumps. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): Timer;
}

export interface Timer {
  /** After it the function is not called; calling it again, or too late, does nothing. */
  cancel(): void;
}

/** Node silently turns a longer delay into 1 ms. */
const MAX_NODE_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn, ms) => startTimer(fn, performance.now() + ms),
};

function startTimer(fn: () => void, dueAt: number): Timer {
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const left = dueAt - performance.now();
    handle = left > MAX_NODE_TIMER_MS ? setTimeout(arm, MAX_NODE_TIMER_MS) : setTimeout(fn, Math.max(0, left));
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

/** Waits `ms` on this clock; rejects with the signal's reason, and leaves no timer behind, once the signal is aborted. */
export function wait(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    const stop = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}
