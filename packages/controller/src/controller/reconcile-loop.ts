import type { FleetSettings } from '@weir/model';
import { type Clock, errorMessage, type Logger, Loop, type LoopOptions } from '@weir/runtime';
import type { Store } from '@weir/store';
import { type LeaderOnlyStore, type Leadership, runWhileLeading } from '../leader/leadership.ts';
import type { Source } from '../watch/source.ts';
import type { ControllerMetrics } from './controller-metrics.ts';

/** A loop of the controller, with the methods to call on events outside of the loop. */
export interface ReconcileLoop {
  readonly loop: Loop;
  /**
   * Forgets all state that another leader may change. Synchronous, because this controller may be elected again before the next run
   * of the loop.
   */
  onLeadershipLost?(): void;
  /** Called when this controller is connected to the store again after the connection was lost. */
  onStoreReady?(): void;
  /** Cancels the timers of the loop. */
  close?(): void;
}

export type ReconcileLoopName = 'table' | 'fleet' | 'status' | 'suspensions' | 'usage' | 'rules';

/** Triggers the loop with this name. */
export type WakeLoop = (name: ReconcileLoopName) => void;

/** The objects that all loops of a controller use. */
export interface LoopContext {
  readonly source: Source;
  readonly store: Store;
  /** The parts of `store` that only the leader may write. After the loss of leadership, writes reject with `LeadershipLost`. */
  readonly leaderStore: LeaderOnlyStore;
  readonly settings: FleetSettings;
  readonly leader: Leadership;
  readonly metrics: ControllerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly wake: WakeLoop;
}

export type LoopIntervals = Pick<LoopOptions, 'gapMs' | 'resyncMs' | 'retryMs'>;

/** Creates a loop that calls `run` only while this controller leads. A run during which leadership is lost does not count as failed. */
export function createLeaderLoop(
  { leader, clock }: Pick<LoopContext, 'leader' | 'clock'>,
  intervals: LoopIntervals,
  { run, onError }: { run(signal: AbortSignal): Promise<void>; onError: LoopOptions['onError'] },
): Loop {
  return new Loop({
    ...intervals,
    clock,
    onError,
    async run(signal) {
      if (leader.isLeader) await runWhileLeading(() => run(signal));
    },
  });
}

/** Returns an error handler that logs the first of several consecutive failures as a warning, and the next failures at debug level. */
export function logLoopFailure(log: Logger, message: string): LoopOptions['onError'] {
  return (error, { failures, retryInMs }) => {
    const fields = { reason: errorMessage(error), retryInMs };
    if (failures === 1) log.warn(fields, message);
    else log.debug(fields, message);
  };
}
