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

/** The suspensions in force from the store and of this node, and the sequence number that all workers have applied. */
export class Suspensions {
  readonly #options: SuspensionsOptions;
  #known: KnownSuspensions | undefined;
  #local: readonly Suspension[] = [];
  readonly #unconfirmedSequences = new MarkTracker<number>();
  #applied = -1;

  constructor(options: SuspensionsOptions) {
    this.#options = options;
  }

  /** The suspensions from the store or its copy on the disk; undefined before they are first read. */
  get known(): KnownSuspensions | undefined {
    return this.#known;
  }

  /** The sequence number that all workers have applied; -1 before the first number. */
  get applied(): number {
    return this.#applied;
  }

  update(known: KnownSuspensions): void {
    this.#known = known;
    this.#send();
    this.#unconfirmedSequences.add(this.#options.pool.mark(), known.sequence);
  }

  /** Replaces the suspensions that were made on this node. They hold in addition to the suspensions from the store. */
  setLocal(suspensions: readonly Suspension[]): void {
    this.#local = suspensions;
    this.#send();
  }

  /** To be called when all workers have reached `mark`. */
  onMarkReached(mark: number): void {
    this.#applied = this.#unconfirmedSequences.takeReached(mark).at(-1) ?? this.#applied;
  }

  commandForNewWorker(): WorkerCommand {
    return { kind: 'suspensions', suspensions: this.#all, now: this.#options.now() };
  }

  get #all(): readonly Suspension[] {
    return [...(this.#known?.cutoffs ?? []), ...this.#local];
  }

  #send(): void {
    const { pool, onChange } = this.#options;
    // The workers get the suspensions before listeners are closed, so that they refuse connections that arrive while a
    // listener is being closed.
    pool.post(this.commandForNewWorker());
    onChange(this.#all);
  }
}
