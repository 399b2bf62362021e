import type { RouteKey } from '@weir/model/data-plane';

/** What the connects of one worker to one endpoint of a listener have shown since the last report. */
export interface PassiveHealthReport {
  readonly listener: RouteKey;
  /** As of `endpointKey`. */
  readonly endpoint: string;
  /** One has succeeded after earlier ones had failed. */
  readonly succeeded: boolean;
  /** So many have failed since: in a row, as this worker saw it. */
  readonly failures: number;
}

const REPORT_INTERVAL_MS = 100;

/** Merges what the main thread must know of connects: it hears of an endpoint, not of each connection that met it. */
export class PassiveHealthReporter {
  readonly #send: (reports: readonly PassiveHealthReport[]) => void;
  readonly #pending = new Map<RouteKey, Map<string, { succeeded: boolean; failures: number }>>();
  #isScheduled = false;

  constructor(tell: (reports: readonly PassiveHealthReport[]) => void) {
    this.#send = tell;
  }

  failed(listener: RouteKey, endpoint: string): void {
    this.#pendingFor(listener, endpoint).failures += 1;
  }

  succeeded(listener: RouteKey, endpoint: string): void {
    const of = this.#pendingFor(listener, endpoint);
    of.succeeded = true;
    of.failures = 0;
  }

  /** It has left: what is not told yet would count against another one at the same address. */
  forget(listener: RouteKey, endpoint: string): void {
    this.#pending.get(listener)?.delete(endpoint);
  }

  #pendingFor(listener: RouteKey, endpoint: string): { succeeded: boolean; failures: number } {
    let endpoints = this.#pending.get(listener);
    if (endpoints === undefined) {
      endpoints = new Map();
      this.#pending.set(listener, endpoints);
    }
    let of = endpoints.get(endpoint);
    if (of === undefined) {
      of = { succeeded: false, failures: 0 };
      endpoints.set(endpoint, of);
    }
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setTimeout(() => this.#flush(), REPORT_INTERVAL_MS).unref();
    }
    return of;
  }

  #flush(): void {
    this.#isScheduled = false;
    const reports = [...this.#pending].flatMap(([listener, endpoints]) =>
      [...endpoints].map(([endpoint, of]): PassiveHealthReport => ({ listener, endpoint, ...of })),
    );
    this.#pending.clear();
    if (reports.length > 0) this.#send(reports);
  }
}

// Connections that this host could not make, whatever the endpoint would have said: counted by their code, so that nobody
// takes it for a fault of the endpoints.

/** As errno has them; what is not here is the endpoint's or the network's. */
export const LOCAL_FAILURES = ['EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EPERM', 'EACCES'] as const;
export type LocalFailure = (typeof LOCAL_FAILURES)[number];

export function isLocalFailure(code: string | undefined): code is LocalFailure {
  return LOCAL_FAILURES.some((each) => each === code);
}

export type LocalFailureCounts = Partial<Record<LocalFailure, number>>;

export class LocalFailureReporter {
  readonly #send: (counts: LocalFailureCounts) => void;
  #counts: LocalFailureCounts = {};

  constructor(tell: (counts: LocalFailureCounts) => void) {
    this.#send = tell;
  }

  /** `code` of a connect that failed. */
  count(code: string | undefined): void {
    if (isLocalFailure(code)) this.#counts[code] = (this.#counts[code] ?? 0) + 1;
  }

  /** Once a second: tells what came since the last time. */
  tick(): void {
    if (Object.keys(this.#counts).length === 0) return;
    this.#send(this.#counts);
    this.#counts = {};
  }
}
