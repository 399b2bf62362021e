import type { Heartbeat } from '@weir/model/data-plane';
import { type Clock, createLoop, type Logger, type Loop } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';

const HEARTBEAT_INTERVAL_MS = 1_000;
/** Between two that something has caused. */
const MIN_HEARTBEAT_GAP_MS = 20;

export interface HeartbeatLoopOptions {
  readonly store: HeartbeatStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined while this life has no number. */
  readonly heartbeat: () => Heartbeat | undefined;
}

/** Says once a second, and at once after `trigger`, what this proxy is and has. */
export function createHeartbeatLoop({ store, clock, log, heartbeat }: HeartbeatLoopOptions): Loop {
  return createLoop({
    async run() {
      const now = heartbeat();
      if (now !== undefined) await store.record(now);
    },
    gapMs: MIN_HEARTBEAT_GAP_MS,
    resyncMs: HEARTBEAT_INTERVAL_MS,
    retryMs: [HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS],
    clock,
    onError: (error) => log.debug({ err: error }, 'heartbeat failed'),
  });
}
