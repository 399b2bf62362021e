import type { Cutoff } from '@weir/model/data-plane';
import type { KnownCutoffs } from '@weir/store';
import type { Order } from '../worker/messages.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';

export interface CutoffRoomOptions {
  readonly pool: () => Pick<WorkerPool, 'post' | 'mark'>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Workers know them by now. */
  readonly onCutoffs: (cutoffs: readonly Cutoff[]) => void;
}

/** The cut-offs in force as the main thread holds them, and which of them all workers have applied. */
export class CutoffRoom {
  readonly #options: CutoffRoomOptions;
  #known: KnownCutoffs | undefined;
  #sent: { readonly mark: number; readonly sequence: number }[] = [];
  #applied = -1;

  constructor(options: CutoffRoomOptions) {
    this.#options = options;
  }

  get known(): KnownCutoffs | undefined {
    return this.#known;
  }

  /** The sequence that all workers have applied; -1 before the first. */
  get applied(): number {
    return this.#applied;
  }

  take(known: KnownCutoffs): void {
    const { pool, onCutoffs } = this.#options;
    this.#known = known;
    // Workers first: what arrives while its listener is being closed is refused there.
    pool().post(this.welcome());
    onCutoffs(known.cutoffs);
    this.#sent.push({ mark: pool().mark(), sequence: known.sequence });
  }

  /** The workers have reached this mark. */
  reached(mark: number): void {
    const done = this.#sent.filter((each) => each.mark <= mark);
    this.#applied = done.at(-1)?.sequence ?? this.#applied;
    this.#sent = this.#sent.slice(done.length);
  }

  /** For a worker that starts. */
  welcome(): Order {
    return { kind: 'cutoffs', cutoffs: this.#known?.cutoffs ?? [], now: this.#options.now() };
  }
}
