// The workers of a proxy. Every worker gets the same commands. A worker that ends is replaced, and its counts are kept.
import { AFFINITY_TABLE_BYTES, type TenantClients } from '@weir/model/data-plane';
import { backoffMs, type Clock, type Logger, type Secret, type Timer, wait } from '@weir/runtime';
import type { LogChunk } from '../access-log/log-buffer.ts';
import { createStickyKey } from '../http/sticky-cookie.ts';
import type { LimiterRegistry } from '../limits/limiter-registry.ts';
import { createCounterBlock } from '../metering/counters.ts';
import type { SlotRegistry } from '../metering/slot-registry.ts';
import { createPeerWorkersMemory } from '../relay/peer-workers.ts';
import { removeFlowOwner } from '../relay/udp-flow-owners.ts';
import type { TlsKind, TransportKind } from '../transport/choose-transport.ts';
import { waitBeforeExit } from '../transport/termination-guard.ts';
import type { PassiveHealthReport } from '../upstream/connect-reports.ts';
import type { DrainingEndpoint } from '../upstream/health/draining-endpoints.ts';
import type { WorkerCommand, WorkerMessage } from '../worker/messages.ts';
import { CertificateFaultLog, LocalFailureLog } from './worker-log.ts';
import { WorkerSlots, type WorkerSlotView } from './worker-slots.ts';
import { availableMemoryBytes, heapLimitMb, WorkerThread } from './worker-thread.ts';

const WATCH_INTERVAL_MS = 250;
const RESTART_BACKOFF = { minMs: 50, maxMs: 5_000 };
/** If no worker has ended for this long, the backoff is reset, and the next worker that ends is replaced at once. */
const BACKOFF_RESET_MS = 30_000;
/**
 * The interval at which `untilReached` checks the marks. The interval is short, because the old and the new proxy both
 * listen while a takeover waits for a mark.
 */
const MARK_POLL_INTERVAL_MS = 2;

export interface WorkerPoolOptions {
  readonly count: number;
  readonly node: string;
  readonly entry: URL;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly trustForwarded: readonly string[] | undefined;
  readonly writeForwarded: boolean | undefined;
  readonly countsClients: boolean | undefined;
  readonly fleetSecret: Secret | undefined;
  readonly transport: TransportKind;
  readonly tls: TlsKind;
  readonly slots: SlotRegistry;
  readonly limits: LimiterRegistry;
  /** The maximum heap of each worker in MiB; by default derived from the memory that this process may use. */
  readonly heapMb?: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the commands that bring a new worker to the state of the other workers. */
  commandsForNewWorker(worker: number): WorkerCommand[];
  onListening(worker: number, listenerId: number): void;
  /** `code` is an errno name. */
  onListenFailed(worker: number, listenerId: number, code: string): void;
  onDrainingEndpoints(worker: number, endpoints: readonly DrainingEndpoint[]): void;
  onPassiveHealth(reports: readonly PassiveHealthReport[]): void;
  /** Called with lines of the access log. The worker sends no more lines before `onTaken` was called. */
  onAccessLog(chunk: LogChunk, onTaken: () => void): void;
  /** Called with a worker's answer to the command `report-clients`. */
  onClients(worker: number, request: number, clients: TenantClients | undefined): void;
  onWorkerEnd(worker: number): void;
  /** Called when `WorkerPool.reached` may have changed. */
  onMarkReached(): void;
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  /** The table of ClientIP affinity, which is kept when a worker is replaced. */
  readonly #affinityMemory = new SharedArrayBuffer(AFFINITY_TABLE_BYTES);
  readonly #stickyKey = createStickyKey();
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
    process.on('exit', this.#onProcessExit);
    for (let index = 0; index < this.#options.count; index += 1) this.#spawn();
    this.#scheduleWatch();
  }

  /** The number of workers that are up. A worker is up when it has applied the commands that every new worker gets. */
  get live(): number {
    return [...this.#live.values()].filter((worker) => worker.reachedMark > 0).length;
  }

  get ids(): readonly number[] {
    return [...this.#live.keys()];
  }

  get slotViews(): readonly WorkerSlotView[] {
    return this.#workerSlots.view();
  }

  /** The number of connection attempts that failed because of this host since the start, by errno name. */
  get localFailures(): Readonly<Record<string, number>> {
    return this.#localFailureLog.totals;
  }

  /** To be called once a second. */
  sampleStats(): void {
    for (const worker of this.#live.values()) worker.sampleStats();
  }

  /** Takes a CPU profile of the worker in this slot, or returns undefined while the slot is empty. */
  profile(slot: number, durationMs: number): Promise<string> | undefined {
    const id = this.#workerSlots.workerIdAt(slot);
    return id === undefined ? undefined : this.#live.get(id)?.profile(durationMs);
  }

  post(command: WorkerCommand): void {
    for (const worker of this.#live.values()) worker.post(command);
  }

  /**
   * Posts a mark to all workers and returns its number. When all workers have applied every command that was posted
   * before the mark, `reached` is at least this number.
   */
  mark(): number {
    this.#lastMark += 1;
    this.post({ kind: 'mark', sequence: this.#lastMark });
    return this.#lastMark;
  }

  /** The highest mark that all workers that are up (see `live`) have reached; 0 while no worker is up. */
  get reached(): number {
    const reached = [...this.#live.values()].map((worker) => worker.reachedMark).filter((mark) => mark > 0);
    return reached.length === 0 ? 0 : Math.min(...reached);
  }

  /** The same as `reached`, but 0 while any worker starts. That worker may still count for what was removed before the mark. */
  get reachedByAll(): number {
    return [...this.#live.values()].every((worker) => worker.reachedMark > 0) ? this.reached : 0;
  }

  /** Resolves when all workers that are up have reached `mark`, when no worker is up, or after `timeoutMs`. */
  async untilReached(mark: number, timeoutMs: number): Promise<void> {
    const { clock } = this.#options;
    const end = clock.monotonic() + timeoutMs;
    while (this.reached > 0 && this.reached < mark && clock.monotonic() < end) await wait(clock, MARK_POLL_INTERVAL_MS);
  }

  /** Adds a counter block to each worker. */
  addCounterBlock(): void {
    for (const worker of this.#live.values()) worker.addCounterBlock(createCounterBlock());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watchTimer?.cancel();
    for (const timer of this.#restarts) timer.cancel();
    await Promise.all([...this.#live.values()].map((worker) => worker.stop()));
    process.off('exit', this.#onProcessExit);
  }

  /**
   * Without this handler, an exit at a second signal or after a failure would abort the process
   * (`termination-guard.ts`).
   */
  readonly #onProcessExit = (): void =>
    waitBeforeExit([...this.#live.values()].map(({ terminationGuard }) => terminationGuard));

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
      trustForwarded: this.#options.trustForwarded,
      writeForwarded: this.#options.writeForwarded,
      countsClients: this.#options.countsClients,
      fleetSecret,
      stickyKey: this.#stickyKey,
      transport: this.#options.transport,
      tls: this.#options.tls,
      workers: count,
      heapMb: this.#heapMb,
      clock,
      onMessage: (from, message) => this.#onMessage(from, message),
      onEnd: (ended, reason) => this.#onWorkerEnd(ended, reason),
    });
    this.#live.set(id, worker);
    this.#workerSlots.occupy(worker);
    slots.addWorker(id, worker.counterBlocks);
    for (const command of commandsForNewWorker(id)) worker.post(command);
    this.#lastMark += 1;
    worker.post({ kind: 'mark', sequence: this.#lastMark });
  }

  #onMessage(worker: WorkerThread, message: WorkerMessage): void {
    const { log, onListening, onListenFailed, onMarkReached } = this.#options;
    switch (message.kind) {
      case 'mark-reached':
        worker.reachedMark = message.sequence;
        onMarkReached();
        return;
      case 'listening':
        onListening(worker.id, message.listenerId);
        return;
      case 'failed':
        onListenFailed(worker.id, message.listenerId, message.code);
        return;
      case 'local-failures':
        this.#localFailureLog.add(message.counts);
        return;
      case 'draining-endpoints':
        this.#options.onDrainingEndpoints(worker.id, message.endpoints);
        return;
      case 'passive-health':
        this.#options.onPassiveHealth(message.reports);
        return;
      case 'access-log':
        this.#options.onAccessLog(message.chunk, () => worker.takeNextAccessLog());
        return;
      case 'clients':
        this.#options.onClients(worker.id, message.request, message.clients);
        return;
      case 'certificate-fault':
        this.#certificateFaultLog.add(message.report);
        return;
      case 'error':
        if (message.origin === 'internal')
          log.error({ worker: worker.id, trouble: message.text }, 'a connection ended because of a bug');
        else log.warn({ worker: worker.id, code: message.text }, 'failed to accept a connection');
    }
  }

  #onWorkerEnd(worker: WorkerThread, reason: string): void {
    const { slots, limits, log, clock, onWorkerEnd, onMarkReached } = this.#options;
    this.#live.delete(worker.id);
    this.#workerSlots.vacate(worker.id);
    slots.removeWorker(worker.id);
    removeFlowOwner(this.#peerWorkers.owners, worker.id);
    limits.removeWorker(worker.id);
    if (this.#isClosed) return;
    log.error({ worker: worker.id, reason }, 'worker ended; starting another one');
    onWorkerEnd(worker.id);
    onMarkReached();
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
