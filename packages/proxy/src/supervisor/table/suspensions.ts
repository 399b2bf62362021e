import type { Suspension } from '@weir/model/data-plane';
import type { KnownSuspensions } from '@weir/store';
import type { WorkerCommand } from '../../worker/messages.ts';
import type { WorkerPool } from '../worker-pool.ts';

export interface SuspensionsOptions {
  readonly pool: () => Pick<WorkerPool, 'post' | 'mark'>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Workers know them by now. */
  readonly onChange: (cutoffs: readonly Suspension[]) => void;
}

/** The cut-offs in force as the main thread holds them, and which of them all workers have applied. */
export class Suspensions {
  readonly #options: SuspensionsOptions;
  #known: KnownSuspensions | undefined;
  #unconfirmed: { readonly mark: number; readonly sequence: number }[] = [];
  #applied = -1;

  constructor(options: SuspensionsOptions) {
    this.#options = options;
  }

  get known(): KnownSuspensions | undefined {
    return this.#known;
  }

  /** The sequence that all workers have applied; -1 before the first. */
  get applied(): number {
    return this.#applied;
  }

  update(known: KnownSuspensions): void {
    const { pool, onChange } = this.#options;
    this.#known = known;
    // Workers first: what arrives while its listener is being closed is refused there.
    pool().post(this.commandForNewWorker());
    onChange(known.cutoffs);
    this.#unconfirmed.push({ mark: pool().mark(), sequence: known.sequence });
  }

  /** The workers have reached this mark. */
  onMarkReached(mark: number): void {
    const done = this.#unconfirmed.filter((each) => each.mark <= mark);
    this.#applied = done.at(-1)?.sequence ?? this.#applied;
    this.#unconfirmed = this.#unconfirmed.slice(done.length);
  }

  /** For a worker that starts. */
  commandForNewWorker(): WorkerCommand {
    return { kind: 'suspensions', suspensions: this.#known?.cutoffs ?? [], now: this.#options.now() };
  }
}
