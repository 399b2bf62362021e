import { Worker } from 'node:worker_threads';
import type { Clock, Secret } from '@weir/runtime';
import type { LimitSeat } from '../admit/limit-memory.ts';
import type { NeighbourSeat } from '../udp/neighbours.ts';
import { DELAY_QUANTILES } from '../worker/event-loop-delay.ts';
import type { Answer, Order, SentOrder, WorkerBirth } from '../worker/messages.ts';
import { Outbox } from '../worker/outbox.ts';
import { OrderQueue } from './order-queue.ts';
import { profileOf } from './profile-of.ts';
import { sumSlabs, type WorkerCounts } from './slab-sums.ts';
import { inPieces } from './table-pieces.ts';
import { type Vitals, WorkerVitals } from './worker-vitals.ts';

/** `tsc` rewrites imports but not the text of URLs. */
export const WORKER_ENTRY: URL = new URL(
  import.meta.url.endsWith('.ts') ? '../worker.ts' : '../worker.js',
  import.meta.url,
);

/** A thread that is still loading on a busy machine has not died. */
const START_MS = 20_000;
const SILENCE_MS = 2_000;
/** A large table makes it grow to four times as much, which it would keep, and relaying leaves little for it to hold. */
const YOUNG_MB = 12;
/** When we ourselves looked so late, it was this process or machine that stood still, and the silence proves nothing. */
const LATE_MS = 1_000;

export interface WorkerThreadOptions {
  readonly id: number;
  readonly entry: URL;
  readonly node: string;
  readonly slabs: readonly SharedArrayBuffer[];
  readonly affinity: SharedArrayBuffer;
  readonly limits: LimitSeat;
  readonly neighbours: NeighbourSeat;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly fleetSecret: Secret | undefined;
  readonly workers: number;
  readonly heapMb: number;
  readonly clock: Clock;
  onAnswer(worker: WorkerThread, answer: Answer): void;
  /** Once: it has ended, of itself (why) or because it was stopped. */
  onEnd(worker: WorkerThread, reason: string): void;
}

/** One worker thread as the main thread sees it. */
export class WorkerThread {
  readonly id: number;
  readonly slabs: SharedArrayBuffer[];
  /** The last mark that it has reached. */
  reached = 0;
  readonly #worker: Worker;
  readonly #orders: OrderQueue;
  readonly #vitals: WorkerVitals;
  readonly #pulse: Int32Array;
  readonly #clock: Clock;
  #lastPulse = 0;
  #pulseAt: number;
  #lookedAt: number;
  #reason: string | undefined;

  constructor(options: WorkerThreadOptions) {
    const { id, entry, node, slabs, affinity, limits, neighbours, trustProxyProtocol, fleetSecret } = options;
    const { workers, heapMb, clock } = options;
    const pulse = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const delays = new SharedArrayBuffer(DELAY_QUANTILES.length * Float64Array.BYTES_PER_ELEMENT);
    const birth: WorkerBirth = {
      node,
      pulse,
      slabs,
      affinity,
      limits,
      neighbours,
      trustProxyProtocol,
      fleetSecret: fleetSecret?.reveal(),
      workers,
      delays,
    };
    this.id = id;
    this.slabs = [...slabs];
    this.#pulse = new Int32Array(pulse);
    this.#clock = clock;
    this.#pulseAt = clock.monotonic();
    this.#lookedAt = this.#pulseAt;
    this.#worker = new Worker(entry, {
      workerData: birth,
      name: `weir-${node}-${id}`,
      // At the limit V8 ends this thread (ERR_WORKER_OUT_OF_MEMORY) and not the process.
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_MB },
    });
    this.#vitals = new WorkerVitals(this.#worker, delays);
    const outbox = new Outbox<SentOrder>((orders) => this.#worker.postMessage(orders), process.nextTick);
    this.#orders = new OrderQueue((order) => {
      outbox.say(inPieces(order));
      if (order.kind === 'cutoffs') outbox.flush();
    });
    this.#worker.on('message', (answers: readonly Answer[]) => {
      for (const answer of answers) {
        if (answer.kind === 'done') this.#orders.answered();
        options.onAnswer(this, answer);
      }
    });
    this.#worker.on('error', (error) => {
      this.#reason ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#worker.on('exit', (code) => options.onEnd(this, this.#reason ?? `it ended with code ${code}`));
  }

  post(order: Order): void {
    this.#orders.post(order);
  }

  get counts(): WorkerCounts {
    return sumSlabs(this.slabs);
  }

  get vitals(): Vitals {
    return this.#vitals.last;
  }

  /** Once a second. */
  look(): void {
    this.#vitals.look();
  }

  /** What it does with its time for so long, as Chrome's developer tools read it; it goes on relaying. */
  profile(durationMs: number): Promise<string> {
    return profileOf(this.#worker, { durationMs, clock: this.#clock });
  }

  grow(slab: SharedArrayBuffer): void {
    this.slabs.push(slab);
    this.post({ kind: 'grow', slab });
  }

  /** Ends it when it has been silent for too long; to be called several times a second. */
  watch(): void {
    const now = this.#clock.monotonic();
    const pulse = Atomics.load(this.#pulse, 0);
    if (pulse !== this.#lastPulse || now - this.#lookedAt > LATE_MS) {
      this.#lastPulse = pulse;
      this.#pulseAt = now;
    }
    this.#lookedAt = now;
    const limit = pulse === 0 ? START_MS : SILENCE_MS;
    if (now - this.#pulseAt < limit || this.#reason !== undefined) return;
    this.#reason = `it was silent for ${Math.round(now - this.#pulseAt)} ms`;
    void this.#worker.terminate();
  }

  async stop(): Promise<void> {
    this.#reason ??= 'stopped';
    await this.#worker.terminate();
  }
}
