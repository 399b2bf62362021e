import type { RouteKey } from '@weir/model/data-plane';

/** What one worker has experienced with one endpoint of a listener since the last report. */
export interface PassiveHealthReport {
  readonly listener: RouteKey;
  /** The `endpointKey` of the endpoint. */
  readonly endpoint: string;
  /** Whether an attempt has succeeded after earlier attempts had failed or the endpoint had been excluded. */
  readonly succeeded: boolean;
  /** The number of attempts that have failed since the last report or, if later, since the last success. */
  readonly failures: number;
  /**
   * `failed` if the endpoint has failed to answer `EJECTION_THRESHOLD_ANSWERS` HTTP requests or more in a row, `good` if
   * a good answer has followed.
   */
  readonly answers: 'failed' | 'good' | undefined;
}

type Results = { -readonly [K in keyof Omit<PassiveHealthReport, 'listener' | 'endpoint'>]: PassiveHealthReport[K] };

const REPORT_INTERVAL_MS = 100;

/**
 * Merges the results of connection attempts and answers per endpoint, so that the main thread does not get a message
 * per connection or request.
 */
export class PassiveHealthReporter {
  readonly #send: (reports: readonly PassiveHealthReport[]) => void;
  readonly #pending = new Map<RouteKey, Map<string, Results>>();
  #isScheduled = false;

  constructor(send: (reports: readonly PassiveHealthReport[]) => void) {
    this.#send = send;
  }

  failed(listener: RouteKey, endpoint: string): void {
    this.#pendingFor(listener, endpoint).failures += 1;
  }

  succeeded(listener: RouteKey, endpoint: string): void {
    const report = this.#pendingFor(listener, endpoint);
    report.succeeded = true;
    report.failures = 0;
  }

  answered(listener: RouteKey, endpoint: string, answers: 'failed' | 'good'): void {
    this.#pendingFor(listener, endpoint).answers = answers;
  }

  /**
   * Drops the unsent results of a removed endpoint, because its failures must not count against a new endpoint at the
   * same address.
   */
  forget(listener: RouteKey, endpoint: string): void {
    this.#pending.get(listener)?.delete(endpoint);
  }

  #pendingFor(listener: RouteKey, endpoint: string): Results {
    let endpoints = this.#pending.get(listener);
    if (endpoints === undefined) {
      endpoints = new Map();
      this.#pending.set(listener, endpoints);
    }
    let report = endpoints.get(endpoint);
    if (report === undefined) {
      report = { succeeded: false, failures: 0, answers: undefined };
      endpoints.set(endpoint, report);
    }
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setTimeout(() => this.#flush(), REPORT_INTERVAL_MS).unref();
    }
    return report;
  }

  #flush(): void {
    this.#isScheduled = false;
    const reports = [...this.#pending].flatMap(([listener, endpoints]) =>
      [...endpoints].map(([endpoint, report]): PassiveHealthReport => ({ listener, endpoint, ...report })),
    );
    this.#pending.clear();
    if (reports.length > 0) this.#send(reports);
  }
}

/**
 * The errno codes of connection attempts that failed because of this host. All other codes are failures of the endpoint
 * or the network.
 */
export const LOCAL_FAILURES = ['EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EPERM', 'EACCES'] as const;
export type LocalFailure = (typeof LOCAL_FAILURES)[number];

export function isLocalFailure(code: string | undefined): code is LocalFailure {
  return LOCAL_FAILURES.some((each) => each === code);
}

export type LocalFailureCounts = Partial<Record<LocalFailure, number>>;

export class LocalFailureReporter {
  readonly #send: (counts: LocalFailureCounts) => void;
  #counts: LocalFailureCounts = {};

  constructor(send: (counts: LocalFailureCounts) => void) {
    this.#send = send;
  }

  /** Counts a failed connection attempt if `code` is a local failure. */
  count(code: string | undefined): void {
    if (isLocalFailure(code)) this.#counts[code] = (this.#counts[code] ?? 0) + 1;
  }

  /** Sends the counts since the last call, if any. Must be called once a second. */
  tick(): void {
    if (Object.keys(this.#counts).length === 0) return;
    this.#send(this.#counts);
    this.#counts = {};
  }
}
