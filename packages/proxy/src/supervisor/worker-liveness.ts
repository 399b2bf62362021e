/** How long a thread may take to start. On a busy machine, loading the modules of the thread takes long. */
const START_TIMEOUT_MS = 20_000;
/** How long a worker may make no progress. */
const MAX_SILENCE_MS = 2_000;
/** How long one turn of a worker's event loop may take, even if the worker makes progress. */
const MAX_TURN_MS = 60_000;
/**
 * The maximum time between two liveness checks of a worker. If more time has passed, the whole process or machine was
 * probably stopped, so unchanged counters prove nothing.
 */
const MAX_WATCH_DELAY_MS = 1_000;

/** The counters of a worker. */
export interface LivenessCounts {
  /** How often a timer of the worker has run; 0 while the worker starts. */
  readonly turns: number;
  /** How many units of work the worker has done, such as events of sockets. */
  readonly progress: number;
}

/**
 * Decides whether a worker still responds. A worker that is late because it has much work makes progress. It must not
 * be ended, because that would end the connections of all tenants.
 */
export class WorkerLiveness {
  #counts: LivenessCounts = { turns: 0, progress: 0 };
  #lastTurnAt: number;
  #lastProgressAt: number;
  #checkedAt: number;

  /** `now` is in milliseconds of a clock that never goes back. */
  constructor(now: number) {
    this.#lastTurnAt = now;
    this.#lastProgressAt = now;
    this.#checkedAt = now;
  }

  /** Returns for how many milliseconds the worker has not responded if that is too long, otherwise undefined. */
  check(counts: LivenessCounts, now: number): number | undefined {
    const wasStopped = now - this.#checkedAt > MAX_WATCH_DELAY_MS;
    this.#checkedAt = now;
    if (wasStopped || counts.turns !== this.#counts.turns) this.#lastTurnAt = this.#lastProgressAt = now;
    if (counts.progress !== this.#counts.progress) this.#lastProgressAt = now;
    this.#counts = counts;
    const silentMs = now - this.#lastProgressAt;
    const turnMs = now - this.#lastTurnAt;
    if (counts.turns === 0) return turnMs >= START_TIMEOUT_MS ? turnMs : undefined;
    if (silentMs >= MAX_SILENCE_MS) return silentMs;
    return turnMs >= MAX_TURN_MS ? turnMs : undefined;
  }
}
