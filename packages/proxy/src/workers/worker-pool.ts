// The workers of a proxy: all are told the same, the dead are replaced, and what they have counted stays.
import { AFFINITY_BYTES } from '@weir/model/data-plane';
import { backoffMs, type Clock, type Logger, type Secret, type Timer } from '@weir/runtime';
import type { LimitBook } from '../admit/limit-book.ts';
import type { SlotBook } from '../counters/slot-book.ts';
import type { DepartedEndpoint } from '../health/departed-book.ts';
import { retireOwner } from '../udp/flow-owners.ts';
import { createNeighbourMemory } from '../udp/neighbours.ts';
import type { ConnectReport } from '../worker/connect-news.ts';
import type { Answer, Order } from '../worker/messages.ts';
import { CertificateLog } from './certificate-log.ts';
import { heapLimitMb, memoryHere } from './heap-limit.ts';
import { LocalFailureLog } from './local-failure-log.ts';
import { Seats, type SeatView } from './seats.ts';
import { WorkerThread } from './worker-thread.ts';

const WATCH_MS = 250;
const RESTART = { minMs: 50, maxMs: 5_000 };
/** A worker that has lived so long was well: the next end starts the pauses anew. */
const WELL_MS = 30_000;

export interface WorkerPoolOptions {
  readonly count: number;
  readonly node: string;
  readonly entry: URL;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly fleetSecret: Secret | undefined;
  readonly slots: SlotBook;
  readonly limits: LimitBook;
  /** Of each worker; absent: by the memory that this process may use. */
  readonly heapMb?: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** All that this new worker must be told to be where the others are. */
  welcome(worker: number): Order[];
  onListening(worker: number, door: number): void;
  onListenFailed(worker: number, door: number, code: string): void;
  onWorkerEnd(worker: number): void;
  onDeparted(worker: number, endpoints: readonly DepartedEndpoint[]): void;
  onConnects(reports: readonly ConnectReport[]): void;
  /** `reached` of the pool has changed. */
  onReached(): void;
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  /** Outlives each of them. */
  readonly #affinity = new SharedArrayBuffer(AFFINITY_BYTES);
  readonly #heapMb: number;
  readonly #seats: Seats;
  readonly #failedConnects: LocalFailureLog;
  readonly #certificates: CertificateLog;
  readonly #live = new Map<number, WorkerThread>();
  readonly #restarts = new Set<Timer>();
  readonly #neighbours = createNeighbourMemory();
  #nextId = 1;
  #sequence = 0;
  #failures = 0;
  #lastEndAt = Number.NEGATIVE_INFINITY;
  #watch: Timer | undefined;
  #isClosed = false;

  constructor(options: WorkerPoolOptions) {
    const { count, heapMb = heapLimitMb(memoryHere(), count), log, clock } = options;
    this.#options = options;
    this.#heapMb = heapMb;
    this.#seats = new Seats(count);
    this.#failedConnects = new LocalFailureLog({ log, clock });
    this.#certificates = new CertificateLog(log);
  }

  start(): void {
    for (let index = 0; index < this.#options.count; index += 1) this.#spawn();
    this.#watchAgain();
  }

  /** Those that have been brought up to date. */
  get live(): number {
    return [...this.#live.values()].filter((worker) => worker.reached > 0).length;
  }

  get ids(): readonly number[] {
    return [...this.#live.keys()];
  }

  /** By seat. */
  get seats(): readonly SeatView[] {
    return this.#seats.view();
  }

  /** Connects that this host could not make, by errno code, since the start. */
  get localFailures(): Readonly<Record<string, number>> {
    return this.#failedConnects.totals;
  }

  /** Once a second. */
  look(): void {
    for (const worker of this.#live.values()) worker.look();
  }

  /** A CPU profile of the worker of this seat; undefined: nobody sits there now. */
  profile(seat: number, durationMs: number): Promise<string> | undefined {
    const id = this.#seats.at(seat);
    return id === undefined ? undefined : this.#live.get(id)?.profile(durationMs);
  }

  post(order: Order): void {
    for (const worker of this.#live.values()) worker.post(order);
  }

  /** A number that `reached` gets to when all workers have followed every order so far. */
  mark(): number {
    this.#sequence += 1;
    this.post({ kind: 'mark', sequence: this.#sequence });
    return this.#sequence;
  }

  /** The mark that all workers which are up to date have reached; 0 while there is none. */
  get reached(): number {
    const reached = [...this.#live.values()].map((worker) => worker.reached).filter((mark) => mark > 0);
    return reached.length === 0 ? 0 : Math.min(...reached);
  }

  grow(): void {
    for (const worker of this.#live.values()) worker.grow(this.#options.slots.newSlab());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.cancel();
    for (const timer of this.#restarts) timer.cancel();
    await Promise.all([...this.#live.values()].map((worker) => worker.stop()));
  }

  #spawn(): void {
    const { count, node, entry, slots, limits, clock, trustProxyProtocol, fleetSecret, welcome } = this.#options;
    const id = this.#nextId++;
    const worker = new WorkerThread({
      id,
      entry,
      node,
      slabs: slots.newSlabs(),
      affinity: this.#affinity,
      limits: limits.seat(id),
      neighbours: { ...this.#neighbours, worker: id },
      trustProxyProtocol,
      fleetSecret,
      workers: count,
      heapMb: this.#heapMb,
      clock,
      onAnswer: (from, answer) => this.#take(from, answer),
      onEnd: (ended, reason) => this.#bury(ended, reason),
    });
    this.#live.set(id, worker);
    this.#seats.take(worker);
    slots.addWorker(id, worker.slabs);
    for (const order of welcome(id)) worker.post(order);
    this.#sequence += 1;
    worker.post({ kind: 'mark', sequence: this.#sequence });
  }

  #take(worker: WorkerThread, answer: Answer): void {
    const { log, onListening, onListenFailed, onReached } = this.#options;
    switch (answer.kind) {
      case 'done':
        worker.reached = answer.sequence;
        onReached();
        return;
      case 'listening':
        onListening(worker.id, answer.door);
        return;
      case 'failed':
        onListenFailed(worker.id, answer.door, answer.code);
        return;
      case 'local-failures':
        this.#failedConnects.take(answer.counts);
        return;
      case 'departed':
        this.#options.onDeparted(worker.id, answer.endpoints);
        return;
      case 'connects':
        this.#options.onConnects(answer.reports);
        return;
      case 'certificate':
        this.#certificates.take(answer.news);
        return;
      case 'trouble':
        if (answer.what === 'internal') log.error({ worker: worker.id, trouble: answer.text }, 'connection failed');
        else log.warn({ worker: worker.id, code: answer.text }, 'connection could not be accepted');
    }
  }

  #bury(worker: WorkerThread, reason: string): void {
    const { slots, limits, log, clock, onWorkerEnd, onReached } = this.#options;
    this.#live.delete(worker.id);
    this.#seats.leave(worker.id);
    slots.removeWorker(worker.id);
    retireOwner(this.#neighbours.owners, worker.id);
    limits.unseat(worker.id);
    if (this.#isClosed) return;
    log.error({ worker: worker.id, reason }, 'worker ended and is replaced');
    onWorkerEnd(worker.id);
    onReached();
    const now = clock.monotonic();
    this.#failures = now - this.#lastEndAt > WELL_MS ? 0 : this.#failures + 1;
    this.#lastEndAt = now;
    const pauseMs = this.#failures === 0 ? 0 : backoffMs(this.#failures, { ...RESTART, random: Math.random });
    const timer = clock.setTimeout(() => {
      this.#restarts.delete(timer);
      this.#spawn();
    }, pauseMs);
    this.#restarts.add(timer);
  }

  #watchAgain(): void {
    this.#watch = this.#options.clock.setTimeout(() => {
      for (const worker of this.#live.values()) worker.watch();
      this.#watchAgain();
    }, WATCH_MS);
  }
}
