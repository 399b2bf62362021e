import { monitorEventLoopDelay } from 'node:perf_hooks';

/** With a shorter resolution, the measurement would be most of the work of an idle worker. */
const RESOLUTION_MS = 50;
/**
 * The length of a window in ticks of one second. Each reported delay covers the current and the previous window, so
 * that a scrape every 30 seconds does not miss a stall.
 */
const WINDOW_TICKS = 30;

/**
 * The quantiles of the delay that are measured. `cells[i]` of the monitor holds the delay for quantile `i`, in seconds.
 */
export const DELAY_QUANTILES = [0.5, 0.99, 1] as const;

export interface EventLoopDelayMonitor {
  /** To be called once a second. */
  tick(): void;
  close(): void;
}

/** Measures how late the event loop of this thread runs its timers, and writes the delays to `cells` at each tick. */
export function startEventLoopDelayMonitor(cells: Float64Array): EventLoopDelayMonitor {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let ticks = 0;
  /** The delays of the previous window. */
  let previous = DELAY_QUANTILES.map(() => 0);
  return {
    tick() {
      // The histogram records the time between two runs of its own timer. That time includes the interval of the timer
      // (the resolution), which is subtracted here.
      const delays = DELAY_QUANTILES.map(
        (quantile) => histogram.percentile(quantile * 100) / 1e9 - RESOLUTION_MS / 1_000,
      );
      delays.forEach((delay, index) => {
        cells[index] = Math.max(0, delay, previous[index] ?? 0);
      });
      ticks += 1;
      if (ticks % WINDOW_TICKS !== 0) return;
      previous = delays;
      histogram.reset();
    },
    close: () => void histogram.disable(),
  };
}
