import { type ServiceView, type Snapshot, storeUnreachableViewsFor } from '@weir/model';
import {
  createLeaderLoop,
  type LoopContext,
  logLoopFailure,
  type ReconcileLoop,
} from '../controller/reconcile-loop.ts';
import { type DesiredViews, STATUS_RECHECK_MS, type StatusSink } from './status-sink.ts';

const STATUS_LOOP = { gapMs: 5, resyncMs: STATUS_RECHECK_MS, retryMs: [1_000, 5_000] } as const;

/**
 * Creates the loop that writes the desired status. This loop is separate from the fleet loop, because a slow API server must not delay the
 * reading of heartbeats.
 */
export function createStatusLoop(context: LoopContext, status: StatusReconciler | undefined): ReconcileLoop {
  const { metrics, log } = context;
  const loop = createLeaderLoop(context, STATUS_LOOP, {
    run: (signal) => metrics.measure('status', async () => status?.write(signal)),
    onError: logLoopFailure(log, 'failed to update Service status; retrying'),
  });
  return { loop, onLeadershipLost: () => status?.reset() };
}

export interface StatusReconcilerOptions {
  readonly sink: StatusSink;
  /** Called when the desired status changed, so that `write` is due. */
  readonly onStatusChange: () => void;
}

/** Passes the desired status of Services to the sink when the views change, or when the status of a Service changes. */
export class StatusReconciler {
  readonly #sink: StatusSink;
  readonly #onStatusChange: () => void;
  /** The inputs of the last call of the sink's `setDesired`. If empty, the next inputs are passed on even if they are the same. */
  #lastInputs: readonly unknown[] = [];
  #hasDesiredStatus = false;
  #undecided: { readonly snapshot: Snapshot; readonly views: readonly ServiceView[] } | undefined;
  /** Aborts when leadership is lost. */
  #term = new AbortController();

  constructor({ sink, onStatusChange }: StatusReconcilerOptions) {
    this.#sink = sink;
    this.#onStatusChange = onStatusChange;
  }

  /** Sets the desired status. The list of views must be the same object as long as no view changes. */
  setDesired(desired: DesiredViews): void {
    const inputs = [desired.kind, desired.views, this.#sink.observedRevision];
    if (areSameItems(inputs, this.#lastInputs)) return;
    this.#lastInputs = inputs;
    this.#hasDesiredStatus = true;
    this.#sink.setDesired(desired);
    this.#onStatusChange();
  }

  /**
   * Sets the desired status for the time until this leader reaches the store: Services without a status show that the store is unreachable,
   * and other Services keep their status.
   */
  setUndecided(snapshot: Snapshot): void {
    if (this.#undecided?.snapshot !== snapshot)
      this.#undecided = { snapshot, views: storeUnreachableViewsFor(snapshot) };
    this.setDesired({ kind: 'undecided', views: this.#undecided.views });
  }

  /** Writes until every Service shows the desired status. Resolves early if leadership is lost. */
  async write(signal: AbortSignal): Promise<void> {
    const { signal: termSignal } = this.#term;
    if (!this.#hasDesiredStatus) return;
    try {
      const outcome = await this.#sink.write(AbortSignal.any([signal, termSignal]));
      if (outcome === 'recheck' && !termSignal.aborted) this.#lastInputs = [];
    } catch (error) {
      if (!termSignal.aborted || signal.aborted) throw error;
    }
  }

  /** Aborts writing and forgets the state. Must be called when leadership is lost, because the next leader writes the status. */
  reset(): void {
    this.#term.abort();
    this.#term = new AbortController();
    this.#undecided = undefined;
    this.#lastInputs = [];
    this.#hasDesiredStatus = false;
  }
}

/** Whether both lists hold the same objects in the same order. */
export function areSameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
