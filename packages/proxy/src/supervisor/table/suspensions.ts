import type { Suspension } from '@weir/model/data-plane';
import type { KnownSuspensions } from '@weir/store';
import type { WorkerCommand } from '../../worker/messages.ts';
import type { WorkerPool } from '../worker-pool.ts';
import { MarkTracker } from './propagation.ts';

export interface SuspensionsOptions {
  readonly pool: Pick<WorkerPool, 'post' | 'mark'>;
  /** Returns milliseconds since the epoch. */
  readonly now: () => number;
  /** Called after the suspensions were sent to the workers. */
  readonly onChange: (suspensions: readonly Suspension[]) => void;
}

/** The suspensions in force, and the sequence number that all workers have applied. */
export class Suspensions {
  readonly #options: SuspensionsOptions;
  #known: KnownSuspensions | undefined;
  readonly #unconfirmedSequences = new MarkTracker<number>();
  #applied = -1;

  constructor(options: SuspensionsOptions) {
    this.#options = options;
  }

  get known(): KnownSuspensions | undefined {
    return this.#known;
  }

  /** The sequence number that all workers have applied; -1 before the first number. */
  get applied(): number {
    return this.#applied;
  }

  update(known: KnownSuspensions): void {
    const { pool, onChange } = this.#options;
    this.#known = known;
    // The workers get the suspensions before listeners are closed, so that they refuse connections that arrive while a
    // listener is being closed.
    pool.post(this.commandForNewWorker());
    onChange(known.cutoffs);
    this.#unconfirmedSequences.add(pool.mark(), known.sequence);
  }

  /** To be called when all workers have reached `mark`. */
  onMarkReached(mark: number): void {
    this.#applied = this.#unconfirmedSequences.takeReached(mark).at(-1) ?? this.#applied;
  }

  commandForNewWorker(): WorkerCommand {
    return { kind: 'suspensions', suspensions: this.#known?.cutoffs ?? [], now: this.#options.now() };
  }
}
