/** The source of time. Tests replace it by `ManualClock`. */
export interface Clock {
  /** Returns the wall-clock time in milliseconds since the Unix epoch, for timestamps. The wall clock may jump. */
  now(): number;
  /** Returns milliseconds since an arbitrary moment, for measuring intervals. This clock never jumps. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): Timer;
}

export interface Timer {
  /** Cancels the timer. Does nothing if the timer has fired or was cancelled before. */
  cancel(): void;
}

/** The longest delay of a Node timer (2^31 - 1 ms): Node silently turns a longer delay into 1 ms. */
export const MAX_NODE_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn, ms) => startTimer(fn, performance.now() + ms),
};

function startTimer(fn: () => void, dueAt: number): Timer {
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const delay = dueAt - performance.now();
    handle = delay > MAX_NODE_TIMER_MS ? setTimeout(arm, MAX_NODE_TIMER_MS) : setTimeout(fn, Math.max(0, delay));
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

/**
 * Waits `ms` milliseconds on `clock`. When the signal aborts, cancels the timer and rejects with the signal's reason.
 */
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
