import type { Heartbeat } from '@weir/model/data-plane';
import { type Clock, createLoop, type Logger, type Loop } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';

const EACH_MS = 1_000;
/** Between two that something has caused. */
const GAP_MS = 20;

export interface HeartOptions {
  readonly store: HeartbeatStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined while this life has no number. */
  readonly heartbeat: () => Heartbeat | undefined;
}

/** Says once a second, and at once after `trigger`, what this proxy is and has. */
export function createHeart({ store, clock, log, heartbeat }: HeartOptions): Loop {
  return createLoop({
    async run() {
      const now = heartbeat();
      if (now !== undefined) await store.beat(now);
    },
    gapMs: GAP_MS,
    resyncMs: EACH_MS,
    retryMs: [EACH_MS, EACH_MS],
    clock,
    onError: (error) => log.debug({ err: error }, 'heartbeat failed'),
  });
}
