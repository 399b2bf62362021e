import { Worker } from 'node:worker_threads';
import type { Clock } from '@weir/runtime';
import type { LimitSeat } from '../admit/limit-memory.ts';
import type { Answer, Order, WorkerBirth } from '../worker/messages.ts';

/** `tsc` rewrites imports but not the text of URLs. */
export const WORKER_ENTRY: URL = new URL(
  import.meta.url.endsWith('.ts') ? '../worker.ts' : '../worker.js',
  import.meta.url,
);

/** A thread that is still loading on a busy machine has not died. */
const START_MS = 20_000;
const SILENCE_MS = 2_000;
/** When we ourselves looked so late, it was this process or machine that stood still, and the silence proves nothing. */
const LATE_MS = 1_000;

export interface WorkerThreadOptions {
  readonly id: number;
  readonly entry: URL;
  readonly node: string;
  readonly slabs: readonly SharedArrayBuffer[];
  readonly affinity: SharedArrayBuffer;
  readonly limits: LimitSeat;
  readonly trustProxyProtocol: readonly string[] | undefined;
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
  readonly #pulse: Int32Array;
  readonly #clock: Clock;
  #lastPulse = 0;
  #pulseAt: number;
  #lookedAt: number;
  #reason: string | undefined;

  constructor(options: WorkerThreadOptions) {
    const { id, entry, node, slabs, affinity, limits, trustProxyProtocol, clock } = options;
    const pulse = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const birth: WorkerBirth = { node, pulse, slabs, affinity, limits, trustProxyProtocol };
    this.id = id;
    this.slabs = [...slabs];
    this.#pulse = new Int32Array(pulse);
    this.#clock = clock;
    this.#pulseAt = clock.monotonic();
    this.#lookedAt = this.#pulseAt;
    this.#worker = new Worker(entry, { workerData: birth, name: `weir-${node}-${id}` });
    this.#worker.on('message', (answer: Answer) => options.onAnswer(this, answer));
    this.#worker.on('error', (error) => {
      this.#reason ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#worker.on('exit', (code) => options.onEnd(this, this.#reason ?? `it ended with code ${code}`));
  }

  post(order: Order): void {
    this.#worker.postMessage(order);
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
