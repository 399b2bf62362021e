import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 20;
/** Of at least so long a time, and at most of twice that, the figures are the worst: a scrape now and then must not miss a stall. */
const WINDOW_TICKS = 30;

/** Where the figures are in the cells, in seconds. */
export const DELAY_QUANTILES = [0.5, 0.99, 1] as const;

export interface EventLoopDelayMonitor {
  /** Call it once a second. */
  tick(): void;
  close(): void;
}

/** By how much events of this thread come too late, written into `cells` with each tick. */
export function startEventLoopDelayMonitor(cells: Float64Array): EventLoopDelayMonitor {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let ticks = 0;
  /** Of the window before this one, which may have begun only now. */
  let former = DELAY_QUANTILES.map(() => 0);
  return {
    tick() {
      // It measures from one of its timers to the next one, which is due after the resolution.
      const delays = DELAY_QUANTILES.map(
        (quantile) => histogram.percentile(quantile * 100) / 1e9 - RESOLUTION_MS / 1_000,
      );
      delays.forEach((delay, index) => {
        cells[index] = Math.max(0, delay, former[index] ?? 0);
      });
      ticks += 1;
      if (ticks % WINDOW_TICKS !== 0) return;
      former = delays;
      histogram.reset();
    },
    close: () => void histogram.disable(),
  };
}
