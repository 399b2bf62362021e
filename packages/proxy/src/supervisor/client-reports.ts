// Asks all workers for the clients of a tenant with the most bytes and connections, and merges their answers.
import { mergeTenantClients, type TenantClients } from '@weir/model/data-plane';
import { type Clock, wait } from '@weir/runtime';
import type { WorkerCommand } from '../worker/messages.ts';

/** A worker that does not answer within this time is left out. */
const TIMEOUT_MS = 1_000;
/** How many requests may wait for the workers at a time. */
const MAX_REQUESTS = 16;

export interface ClientReportsOptions {
  readonly clock: Clock;
  workers(): readonly number[];
  post(command: WorkerCommand): void;
}

/** `missingWorkers` is the number of workers that did not answer in time. */
export interface ClientReport {
  readonly clients: TenantClients;
  readonly missingWorkers: number;
}

interface OpenRequest {
  readonly waitsFor: Set<number>;
  readonly answers: TenantClients[];
  readonly complete: PromiseWithResolvers<void>;
}

export class ClientReports {
  readonly #options: ClientReportsOptions;
  readonly #open = new Map<number, OpenRequest>();
  #lastRequest = 0;

  constructor(options: ClientReportsOptions) {
    this.#options = options;
  }

  /** Returns undefined if no worker answers, or if too many requests wait. */
  async read(tenant: string): Promise<ClientReport | undefined> {
    if (this.#open.size >= MAX_REQUESTS) return undefined;
    const { clock, workers, post } = this.#options;
    this.#lastRequest += 1;
    const request = this.#lastRequest;
    const open = { waitsFor: new Set(workers()), answers: [], complete: Promise.withResolvers<void>() };
    this.#open.set(request, open);
    post({ kind: 'report-clients', tenant, request });
    const timeout = new AbortController();
    await Promise.race([open.complete.promise, wait(clock, TIMEOUT_MS, timeout.signal).catch(() => undefined)]);
    timeout.abort();
    this.#open.delete(request);
    const [first, ...others]: TenantClients[] = open.answers;
    if (first === undefined) return undefined;
    return { clients: mergeTenantClients([first, ...others]), missingWorkers: open.waitsFor.size };
  }

  onClients(worker: number, request: number, clients: TenantClients | undefined): void {
    const open = this.#open.get(request);
    if (open?.waitsFor.delete(worker) !== true) return;
    if (clients !== undefined) open.answers.push(clients);
    if (open.waitsFor.size === 0) open.complete.resolve();
  }
}
