import type { Cutoff, Snapshot } from '@weir/model';
import { cutoffsFor, isInForce } from '@weir/model';
import type { Clock, Logger, Timer } from '@weir/runtime';
import type { CutoffState, CutoffStore } from '@weir/store';
import type { Source } from '../watch/source.ts';
import { nextEndOf, planCutoffs } from './cutoff-plan.ts';
import type { SuspensionErrands } from './suspension-errands.ts';

export interface CutoffKeeperOptions {
  readonly source: Source;
  readonly store: CutoffStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** A cut-off has come to its end: `keep` is due. */
  readonly onEnd: () => void;
  /** Somebody has made one in the store itself. */
  readonly onRequest: () => void;
  /** Finds out beside us what takes asking; here only its answers are acted upon. */
  readonly errands: SuspensionErrands;
}

/** Brings the Suspensions of the source into the store, and out of it once they are known to be gone. */
export class CutoffKeeper {
  readonly #options: CutoffKeeperOptions;
  #remembered: readonly Cutoff[] = [];
  #present: readonly Cutoff[] = [];
  #sequence = 0;
  #timer: Timer | undefined;

  constructor(options: CutoffKeeperOptions) {
    this.#options = options;
  }

  /** Those in the store, as of the last look. */
  get present(): readonly Cutoff[] {
    return this.#present;
  }

  /** Rejects when the store is away; then come again. */
  async keep(snapshot: Snapshot): Promise<void> {
    const { source, store, clock, log, errands } = this.#options;
    const wanted = cutoffsFor(snapshot, (uid) => source.originOf({ uid }));
    const state = await store.read();
    const plan = planCutoffs({
      state,
      wanted,
      remembered: this.#remembered,
      origin: source.kind === 'directory' ? 'file' : 'kubernetes',
      now: clock.now(),
    });
    for (const cutoff of plan.put) {
      await store.put(cutoff);
      log.info({ suspension: cutoff.name, target: cutoff.target }, 'cut-off put in force');
    }
    const adopted = await this.#adopt([...state.cutoffs, ...plan.put], wanted);
    const deleted = plan.missing.filter(({ uid }) => errands.isGone(uid));
    for (const cutoff of plan.expired) await this.#lift(cutoff, 'its time is over');
    for (const cutoff of deleted) await this.#lift(cutoff, 'its Suspension was deleted');
    if (!state.complete) await store.complete();
    const written = plan.put.length + adopted + plan.expired.length + deleted.length;
    // The table waits for this: mostly there is nothing to do, and nothing to be read again.
    this.#take(state.complete && written === 0 ? state : await store.read());
    errands.take({
      missing: plan.missing.filter(({ uid }) => !errands.isGone(uid)),
      over: wanted.filter((cutoff) => !isInForce(cutoff, clock.now())),
    });
  }

  /** Looks what the store holds now. False when it lost something, and `keep` is due. Rejects when it is away. */
  async isIntact(): Promise<boolean> {
    const state = await this.#options.store.read();
    if (!state.complete || state.sequence < this.#sequence) return false;
    this.#take(state);
    return true;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #take({ cutoffs, sequence }: CutoffState): void {
    const { clock, errands, onEnd, onRequest } = this.#options;
    this.#present = cutoffs;
    this.#sequence = sequence;
    this.#remembered = cutoffs.filter((cutoff) => cutoff.origin.kind === 'store');
    if (errands.request(this.#remembered) === 'new') onRequest();
    this.#timer?.cancel();
    const end = nextEndOf(cutoffs, clock.now());
    this.#timer = end === null ? undefined : clock.setTimeout(onEnd, end - clock.now());
  }

  /** First the Suspension's, then away with the request's: so that it never lapses. Returns how many. */
  async #adopt(cutoffs: readonly Cutoff[], wanted: readonly Cutoff[]): Promise<number> {
    const { store, errands, log } = this.#options;
    let adopted = 0;
    for (const request of cutoffs.filter(({ origin }) => origin.kind === 'store')) {
      const made = errands.madeFrom(request);
      if (made === undefined) continue;
      adopted += 1;
      // What the source says of it may be newer, and is in the store by now.
      if (!wanted.some(({ uid }) => uid === made.uid)) await store.put(made);
      await store.remove(request.uid);
      log.info(
        { suspension: made.name, target: made.target },
        'a cut-off that was made in the store is a Suspension now',
      );
    }
    return adopted;
  }

  async #lift(cutoff: Cutoff, why: string): Promise<void> {
    await this.#options.store.remove(cutoff.uid);
    this.#options.log.info({ suspension: cutoff.name, target: cutoff.target, why }, 'cut-off lifted');
  }
}
