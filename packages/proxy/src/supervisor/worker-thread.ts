import { totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Clock, Secret } from '@weir/runtime';
import { createLogFlag, takeNextChunk } from '../access-log/log-buffer.ts';
import type { WorkerLimiterMemory } from '../limits/limiter-state.ts';
import type { PeerWorkersSetup } from '../relay/peer-workers.ts';
import {
  closeAbandonedDescriptors,
  createDescriptorMemory,
  type TlsKind,
  type TransportKind,
} from '../transport/choose-transport.ts';
import { createTerminationGuard, untilTerminable } from '../transport/termination-guard.ts';
import { DELAY_QUANTILES } from '../worker/event-loop-delay.ts';
import {
  LIVENESS_COUNTERS,
  MessageBatcher,
  PROGRESS_COUNTER,
  type SentCommand,
  TURNS_COUNTER,
  type WorkerCommand,
  type WorkerMessage,
  type WorkerStartData,
} from '../worker/messages.ts';
import { CommandQueue, packTable } from './table-delivery.ts';
import { WorkerLiveness } from './worker-liveness.ts';
import { profileWorker, sumCounters, type WorkerCounts, type WorkerStats, WorkerStatsSampler } from './worker-stats.ts';

/**
 * The module that a worker thread runs. It has the same file extension as this module, because `tsc` rewrites
 * extensions in imports but not in URLs.
 */
export const WORKER_ENTRY: URL = new URL(
  import.meta.url.endsWith('.ts') ? '../worker.ts' : '../worker.js',
  import.meta.url,
);

/**
 * The maximum size of the young generation of a worker's heap. Without this limit, a large table would make the young
 * generation four times as large permanently, although relaying needs little of it.
 */
const YOUNG_GENERATION_MB = 12;

export interface WorkerThreadOptions {
  readonly id: number;
  readonly entry: URL;
  readonly node: string;
  readonly counterBlocks: readonly SharedArrayBuffer[];
  readonly affinity: SharedArrayBuffer;
  readonly limits: WorkerLimiterMemory;
  readonly peerWorkers: PeerWorkersSetup;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly trustForwarded: readonly string[] | undefined;
  readonly writeForwarded: boolean | undefined;
  readonly countsClients: boolean | undefined;
  readonly fleetSecret: Secret | undefined;
  readonly stickyKey: Uint8Array;
  readonly workers: number;
  readonly transport: TransportKind;
  readonly tls: TlsKind;
  readonly heapMb: number;
  readonly clock: Clock;
  onMessage(worker: WorkerThread, message: WorkerMessage): void;
  /** Called once, when the thread has ended by itself or was stopped. */
  onEnd(worker: WorkerThread, reason: string): void;
}

/** Controls one worker thread from the main thread. */
export class WorkerThread {
  readonly id: number;
  readonly counterBlocks: SharedArrayBuffer[];
  /** The last mark that the worker has reached; 0 before the first mark. */
  reachedMark = 0;
  readonly #worker: Worker;
  readonly #commands: CommandQueue;
  readonly #stats: WorkerStatsSampler;
  readonly #livenessCounters: Int32Array;
  readonly #liveness: WorkerLiveness;
  readonly #clock: Clock;
  readonly #accessLogFlag = createLogFlag();
  readonly terminationGuard: SharedArrayBuffer = createTerminationGuard();
  #endReason: string | undefined;
  /** Resolves when the thread has ended and its descriptors are closed. */
  readonly #ended = Promise.withResolvers<void>();

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
    const { transport, tls } = options;
    const descriptors = createDescriptorMemory();
    const livenessCounters = new SharedArrayBuffer(LIVENESS_COUNTERS * Int32Array.BYTES_PER_ELEMENT);
    const droppedDatagrams = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
    const eventLoopDelays = new SharedArrayBuffer(DELAY_QUANTILES.length * Float64Array.BYTES_PER_ELEMENT);
    const startData: WorkerStartData = {
      node,
      livenessCounters,
      counterBlocks,
      affinityMemory,
      limiterMemory,
      peerWorkers,
      trustedProxies,
      trustForwarded: options.trustForwarded,
      writeForwarded: options.writeForwarded,
      countsClients: options.countsClients,
      fleetSecret: fleetSecret?.reveal(),
      stickyKey: options.stickyKey,
      workerCount,
      transport,
      tls,
      descriptors,
      terminationGuard: this.terminationGuard,
      eventLoopDelays,
      droppedDatagrams,
      accessLogFlag: this.#accessLogFlag,
    };
    this.id = id;
    this.counterBlocks = [...counterBlocks];
    this.#livenessCounters = new Int32Array(livenessCounters);
    this.#clock = clock;
    this.#liveness = new WorkerLiveness(clock.monotonic());
    this.#worker = new Worker(entry, {
      workerData: startData,
      name: `weir-${node}-${id}`,
      // At this limit V8 ends the thread (ERR_WORKER_OUT_OF_MEMORY), not the process.
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#stats = new WorkerStatsSampler(this.#worker, { delays: eventLoopDelays, droppedDatagrams });
    const batcher = new MessageBatcher<SentCommand>((commands) => this.#worker.postMessage(commands), process.nextTick);
    this.#commands = new CommandQueue((command) => {
      batcher.add(packTable(command));
      if (command.kind === 'suspensions') batcher.flush();
    });
    this.#worker.on('message', (messages: readonly WorkerMessage[]) => {
      for (const message of messages) {
        if (message.kind === 'mark-reached') this.#commands.onMarkReached();
        options.onMessage(this, message);
      }
    });
    this.#worker.on('error', (error) => {
      this.#endReason ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#worker.on('exit', async (code) => {
      await closeAbandonedDescriptors(descriptors);
      this.#ended.resolve();
      options.onEnd(this, this.#endReason ?? `the worker exited with code ${code}`);
    });
  }

  post(command: WorkerCommand): void {
    this.#commands.post(command);
  }

  /** Allows the worker to send the next lines of the access log. */
  takeNextAccessLog(): void {
    takeNextChunk(this.#accessLogFlag);
  }

  get counts(): WorkerCounts {
    return sumCounters(this.counterBlocks);
  }

  get stats(): WorkerStats {
    return this.#stats.last;
  }

  /** To be called once a second. */
  sampleStats(): void {
    this.#stats.sample();
  }

  /** Takes a CPU profile in the format of Chrome's developer tools, while the worker continues to relay. */
  profile(durationMs: number): Promise<string> {
    return profileWorker(this.#worker, { durationMs, clock: this.#clock });
  }

  addCounterBlock(block: SharedArrayBuffer): void {
    this.counterBlocks.push(block);
    this.post({ kind: 'add-counter-block', block });
  }

  /** Ends the worker if it has not responded for too long. To be called several times a second. */
  watch(): void {
    const counters = this.#livenessCounters;
    const counts = {
      turns: Atomics.load(counters, TURNS_COUNTER),
      progress: Atomics.load(counters, PROGRESS_COUNTER),
    };
    const silentMs = this.#liveness.check(counts, this.#clock.monotonic());
    if (silentMs === undefined || this.#endReason !== undefined) return;
    this.#endReason = `the worker did not respond for ${Math.round(silentMs)} ms`;
    void this.#terminate();
  }

  async stop(): Promise<void> {
    this.#endReason ??= 'stopped';
    await this.#terminate();
    await this.#ended.promise;
  }

  async #terminate(): Promise<void> {
    await untilTerminable(this.terminationGuard);
    await this.#worker.terminate();
  }
}

const MAX_HEAP_MB = 4_096;
const MIN_HEAP_MB = 128;
/**
 * The share of the available memory that the heaps of all workers may use. The rest is for buffers in this process and
 * in the kernel, and for other processes.
 */
const WORKERS_MEMORY_SHARE = 0.5;

/**
 * Returns the maximum heap of one worker in MiB. Because of this maximum, a worker that leaks memory is replaced before
 * the kernel kills the process with all its workers. `memoryBytes` is the memory that this process may use.
 */
export function heapLimitMb(memoryBytes: number, workers: number): number {
  const shareMb = (memoryBytes * WORKERS_MEMORY_SHARE) / (workers + 1) / 1_048_576;
  return Math.floor(Math.min(MAX_HEAP_MB, Math.max(MIN_HEAP_MB, shareMb)));
}

/** Returns the memory of the machine, or the limit of this process's cgroup if that is less. */
export function availableMemoryBytes(): number {
  const limit = process.constrainedMemory();
  // `limit` is 0 if it is unknown, and larger than the memory of any machine if the cgroup has no limit.
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
