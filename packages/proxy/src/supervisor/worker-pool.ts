// The workers of a proxy: all are told the same, the dead are replaced, and what they have counted stays.
import { AFFINITY_TABLE_BYTES } from '@weir/model/data-plane';
import { backoffMs, type Clock, type Logger, type Secret, type Timer } from '@weir/runtime';
import type { LimiterRegistry } from '../limits/limiter-registry.ts';
import type { SlotRegistry } from '../metering/slot-registry.ts';
import { createPeerWorkersMemory } from '../relay/peer-workers.ts';
import { removeFlowOwner } from '../relay/udp-flow-owners.ts';
import type { PassiveHealthReport } from '../upstream/connect-reports.ts';
import type { DrainingEndpoint } from '../upstream/health/draining-endpoints.ts';
import type { WorkerCommand, WorkerMessage } from '../worker/messages.ts';
import { CertificateFaultLog, LocalFailureLog } from './worker-log.ts';
import { WorkerSlots, type WorkerSlotView } from './worker-slots.ts';
import { availableMemoryBytes, heapLimitMb, WorkerThread } from './worker-thread.ts';

const WATCH_INTERVAL_MS = 250;
const RESTART_BACKOFF = { minMs: 50, maxMs: 5_000 };
/** A worker that has lived so long was well: the next end starts the pauses anew. */
const BACKOFF_RESET_MS = 30_000;

export interface WorkerPoolOptions {
  readonly count: number;
  readonly node: string;
  readonly entry: URL;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly fleetSecret: Secret | undefined;
  readonly slots: SlotRegistry;
  readonly limits: LimiterRegistry;
  /** Of each worker; absent: by the memory that this process may use. */
  readonly heapMb?: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** All that this new worker must be told to be where the others are. */
  commandsForNewWorker(worker: number): WorkerCommand[];
  onListening(worker: number, door: number): void;
  onListenFailed(worker: number, door: number, code: string): void;
  onWorkerEnd(worker: number): void;
  onDrainingEndpoints(worker: number, endpoints: readonly DrainingEndpoint[]): void;
  onPassiveHealth(reports: readonly PassiveHealthReport[]): void;
  /** `reached` of the pool has changed. */
  onReached(): void;
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  /** Outlives each of them. */
  readonly #affinityMemory = new SharedArrayBuffer(AFFINITY_TABLE_BYTES);
  readonly #heapMb: number;
  readonly #workerSlots: WorkerSlots;
  readonly #localFailureLog: LocalFailureLog;
  readonly #certificateFaultLog: CertificateFaultLog;
  readonly #live = new Map<number, WorkerThread>();
  readonly #restarts = new Set<Timer>();
  readonly #peerWorkers = createPeerWorkersMemory();
  #nextId = 1;
  #lastMark = 0;
  #failures = 0;
  #lastEndAt = Number.NEGATIVE_INFINITY;
  #watchTimer: Timer | undefined;
  #isClosed = false;

  constructor(options: WorkerPoolOptions) {
    const { count, heapMb = heapLimitMb(availableMemoryBytes(), count), log, clock } = options;
    this.#options = options;
    this.#heapMb = heapMb;
    this.#workerSlots = new WorkerSlots(count);
    this.#localFailureLog = new LocalFailureLog({ log, clock });
    this.#certificateFaultLog = new CertificateFaultLog(log);
  }

  start(): void {
    for (let index = 0; index < this.#options.count; index += 1) this.#spawn();
    this.#scheduleWatch();
  }

  /** Those that have been brought up to date. */
  get live(): number {
    return [...this.#live.values()].filter((worker) => worker.reachedMark > 0).length;
  }

  get ids(): readonly number[] {
    return [...this.#live.keys()];
  }

  /** By seat. */
  get slotViews(): readonly WorkerSlotView[] {
    return this.#workerSlots.view();
  }

  /** Connects that this host could not make, by errno code, since the start. */
  get localFailures(): Readonly<Record<string, number>> {
    return this.#localFailureLog.totals;
  }

  /** Once a second. */
  sampleStats(): void {
    for (const worker of this.#live.values()) worker.sampleStats();
  }

  /** A CPU profile of the worker of this seat; undefined: nobody sits there now. */
  profile(seat: number, durationMs: number): Promise<string> | undefined {
    const id = this.#workerSlots.workerIdAt(seat);
    return id === undefined ? undefined : this.#live.get(id)?.profile(durationMs);
  }

  post(order: WorkerCommand): void {
    for (const worker of this.#live.values()) worker.post(order);
  }

  /** A number that `reached` gets to when all workers have followed every order so far. */
  mark(): number {
    this.#lastMark += 1;
    this.post({ kind: 'mark', sequence: this.#lastMark });
    return this.#lastMark;
  }

  /** The mark that all workers which are up to date have reached; 0 while there is none. */
  get reached(): number {
    const reached = [...this.#live.values()].map((worker) => worker.reachedMark).filter((mark) => mark > 0);
    return reached.length === 0 ? 0 : Math.min(...reached);
  }

  grow(): void {
    for (const worker of this.#live.values()) worker.grow(this.#options.slots.createBlock());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watchTimer?.cancel();
    for (const timer of this.#restarts) timer.cancel();
    await Promise.all([...this.#live.values()].map((worker) => worker.stop()));
  }

  #spawn(): void {
    const { count, node, entry, slots, limits, clock, trustProxyProtocol, fleetSecret, commandsForNewWorker } =
      this.#options;
    const id = this.#nextId++;
    const worker = new WorkerThread({
      id,
      entry,
      node,
      counterBlocks: slots.createBlocks(),
      affinity: this.#affinityMemory,
      limits: limits.addWorker(id),
      peerWorkers: { ...this.#peerWorkers, worker: id },
      trustProxyProtocol,
      fleetSecret,
      workers: count,
      heapMb: this.#heapMb,
      clock,
      onMessage: (from, answer) => this.#onMessage(from, answer),
      onEnd: (ended, reason) => this.#onWorkerEnd(ended, reason),
    });
    this.#live.set(id, worker);
    this.#workerSlots.occupy(worker);
    slots.addWorker(id, worker.counterBlocks);
    for (const order of commandsForNewWorker(id)) worker.post(order);
    this.#lastMark += 1;
    worker.post({ kind: 'mark', sequence: this.#lastMark });
  }

  #onMessage(worker: WorkerThread, answer: WorkerMessage): void {
    const { log, onListening, onListenFailed, onReached } = this.#options;
    switch (answer.kind) {
      case 'mark-reached':
        worker.reachedMark = answer.sequence;
        onReached();
        return;
      case 'listening':
        onListening(worker.id, answer.listenerId);
        return;
      case 'failed':
        onListenFailed(worker.id, answer.listenerId, answer.code);
        return;
      case 'local-failures':
        this.#localFailureLog.add(answer.counts);
        return;
      case 'draining-endpoints':
        this.#options.onDrainingEndpoints(worker.id, answer.endpoints);
        return;
      case 'passive-health':
        this.#options.onPassiveHealth(answer.reports);
        return;
      case 'certificate-fault':
        this.#certificateFaultLog.add(answer.report);
        return;
      case 'error':
        if (answer.origin === 'internal') log.error({ worker: worker.id, trouble: answer.text }, 'connection failed');
        else log.warn({ worker: worker.id, code: answer.text }, 'connection could not be accepted');
    }
  }

  #onWorkerEnd(worker: WorkerThread, reason: string): void {
    const { slots, limits, log, clock, onWorkerEnd, onReached } = this.#options;
    this.#live.delete(worker.id);
    this.#workerSlots.vacate(worker.id);
    slots.removeWorker(worker.id);
    removeFlowOwner(this.#peerWorkers.owners, worker.id);
    limits.removeWorker(worker.id);
    if (this.#isClosed) return;
    log.error({ worker: worker.id, reason }, 'worker ended and is replaced');
    onWorkerEnd(worker.id);
    onReached();
    const now = clock.monotonic();
    this.#failures = now - this.#lastEndAt > BACKOFF_RESET_MS ? 0 : this.#failures + 1;
    this.#lastEndAt = now;
    const pauseMs = this.#failures === 0 ? 0 : backoffMs(this.#failures, { ...RESTART_BACKOFF, random: Math.random });
    const timer = clock.setTimeout(() => {
      this.#restarts.delete(timer);
      this.#spawn();
    }, pauseMs);
    this.#restarts.add(timer);
  }

  #scheduleWatch(): void {
    this.#watchTimer = this.#options.clock.setTimeout(() => {
      for (const worker of this.#live.values()) worker.watch();
      this.#scheduleWatch();
    }, WATCH_INTERVAL_MS);
  }
}
