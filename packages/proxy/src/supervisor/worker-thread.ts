import { totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Clock, Secret } from '@weir/runtime';
import type { WorkerLimiterMemory } from '../limits/limiter-state.ts';
import type { PeerWorkersSetup } from '../relay/peer-workers.ts';
import { DELAY_QUANTILES } from '../worker/event-loop-delay.ts';
import {
  MessageBatcher,
  type SentCommand,
  type WorkerCommand,
  type WorkerMessage,
  type WorkerStartData,
} from '../worker/messages.ts';
import { CommandQueue, packTable } from './table-delivery.ts';
import { profileWorker, sumCounters, type WorkerCounts, type WorkerStats, WorkerStatsSampler } from './worker-stats.ts';

/** `tsc` rewrites imports but not the text of URLs. */
export const WORKER_ENTRY: URL = new URL(
  import.meta.url.endsWith('.ts') ? '../worker.ts' : '../worker.js',
  import.meta.url,
);

/** A thread that is still loading on a busy machine has not died. */
const START_TIMEOUT_MS = 20_000;
const MAX_SILENCE_MS = 2_000;
/** A large table makes it grow to four times as much, which it would keep, and relaying leaves little for it to hold. */
const YOUNG_GENERATION_MB = 12;
/** When we ourselves looked so late, it was this process or machine that stood still, and the silence proves nothing. */
const MAX_WATCH_DELAY_MS = 1_000;

export interface WorkerThreadOptions {
  readonly id: number;
  readonly entry: URL;
  readonly node: string;
  readonly counterBlocks: readonly SharedArrayBuffer[];
  readonly affinity: SharedArrayBuffer;
  readonly limits: WorkerLimiterMemory;
  readonly peerWorkers: PeerWorkersSetup;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly fleetSecret: Secret | undefined;
  readonly workers: number;
  readonly heapMb: number;
  readonly clock: Clock;
  onMessage(worker: WorkerThread, answer: WorkerMessage): void;
  /** Once: it has ended, of itself (why) or because it was stopped. */
  onEnd(worker: WorkerThread, reason: string): void;
}

/** One worker thread as the main thread sees it. */
export class WorkerThread {
  readonly id: number;
  readonly counterBlocks: SharedArrayBuffer[];
  /** The last mark that it has reached. */
  reachedMark = 0;
  readonly #worker: Worker;
  readonly #commands: CommandQueue;
  readonly #stats: WorkerStatsSampler;
  readonly #livenessCounter: Int32Array;
  readonly #clock: Clock;
  #lastLivenessCount = 0;
  #lastAliveAt: number;
  #watchedAt: number;
  #endReason: string | undefined;

  constructor(options: WorkerThreadOptions) {
    const {
      id,
      entry,
      node,
      counterBlocks,
      affinity: affinityMemory,
      limits: limiterMemory,
      peerWorkers,
      trustProxyProtocol: trustedProxies,
      fleetSecret,
    } = options;
    const { workers: workerCount, heapMb, clock } = options;
    const livenessCounter = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const eventLoopDelays = new SharedArrayBuffer(DELAY_QUANTILES.length * Float64Array.BYTES_PER_ELEMENT);
    const birth: WorkerStartData = {
      node,
      livenessCounter,
      counterBlocks,
      affinityMemory,
      limiterMemory,
      peerWorkers,
      trustedProxies,
      fleetSecret: fleetSecret?.reveal(),
      workerCount,
      eventLoopDelays,
    };
    this.id = id;
    this.counterBlocks = [...counterBlocks];
    this.#livenessCounter = new Int32Array(livenessCounter);
    this.#clock = clock;
    this.#lastAliveAt = clock.monotonic();
    this.#watchedAt = this.#lastAliveAt;
    this.#worker = new Worker(entry, {
      workerData: birth,
      name: `weir-${node}-${id}`,
      // At the limit V8 ends this thread (ERR_WORKER_OUT_OF_MEMORY) and not the process.
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#stats = new WorkerStatsSampler(this.#worker, eventLoopDelays);
    const outbox = new MessageBatcher<SentCommand>((orders) => this.#worker.postMessage(orders), process.nextTick);
    this.#commands = new CommandQueue((order) => {
      outbox.add(packTable(order));
      if (order.kind === 'suspensions') outbox.flush();
    });
    this.#worker.on('message', (answers: readonly WorkerMessage[]) => {
      for (const answer of answers) {
        if (answer.kind === 'mark-reached') this.#commands.onMarkReached();
        options.onMessage(this, answer);
      }
    });
    this.#worker.on('error', (error) => {
      this.#endReason ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#worker.on('exit', (code) => options.onEnd(this, this.#endReason ?? `it ended with code ${code}`));
  }

  post(order: WorkerCommand): void {
    this.#commands.post(order);
  }

  get counts(): WorkerCounts {
    return sumCounters(this.counterBlocks);
  }

  get stats(): WorkerStats {
    return this.#stats.last;
  }

  /** Once a second. */
  sampleStats(): void {
    this.#stats.sample();
  }

  /** What it does with its time for so long, as Chrome's developer tools read it; it goes on relaying. */
  profile(durationMs: number): Promise<string> {
    return profileWorker(this.#worker, { durationMs, clock: this.#clock });
  }

  grow(slab: SharedArrayBuffer): void {
    this.counterBlocks.push(slab);
    this.post({ kind: 'add-counter-block', block: slab });
  }

  /** Ends it when it has been silent for too long; to be called several times a second. */
  watch(): void {
    const now = this.#clock.monotonic();
    const pulse = Atomics.load(this.#livenessCounter, 0);
    if (pulse !== this.#lastLivenessCount || now - this.#watchedAt > MAX_WATCH_DELAY_MS) {
      this.#lastLivenessCount = pulse;
      this.#lastAliveAt = now;
    }
    this.#watchedAt = now;
    const limit = pulse === 0 ? START_TIMEOUT_MS : MAX_SILENCE_MS;
    if (now - this.#lastAliveAt < limit || this.#endReason !== undefined) return;
    this.#endReason = `it was silent for ${Math.round(now - this.#lastAliveAt)} ms`;
    void this.#worker.terminate();
  }

  async stop(): Promise<void> {
    this.#endReason ??= 'stopped';
    await this.#worker.terminate();
  }
}

const MAX_HEAP_MB = 4_096;
const MIN_HEAP_MB = 128;
/** The rest is for buffers, the kernel's and ours, and for everybody else. */
const WORKERS_MEMORY_SHARE = 0.5;

/**
 * How large the heap of one worker may grow, in MiB, so that a worker that leaks is ended and replaced before this process is
 * killed with all of its workers. `memory`: what this process may use, in bytes.
 */
export function heapLimitMb(memory: number, workers: number): number {
  const each = (memory * WORKERS_MEMORY_SHARE) / (workers + 1) / 1_048_576;
  return Math.floor(Math.min(MAX_HEAP_MB, Math.max(MIN_HEAP_MB, each)));
}

/** What this process may use: of the machine, or of its cgroup where that is less. */
export function availableMemoryBytes(): number {
  const limit = process.constrainedMemory();
  // 0: unknown; without a limit cgroups say a number beyond any machine.
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
