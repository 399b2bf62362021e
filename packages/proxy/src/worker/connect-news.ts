import type { RouteKey } from '@weir/model/data-plane';

/** What the connects of one worker to one endpoint of a listener have shown since the last report. */
export interface ConnectReport {
  readonly listener: RouteKey;
  /** As of `endpointKey`. */
  readonly endpoint: string;
  /** One has succeeded after earlier ones had failed. */
  readonly succeeded: boolean;
  /** So many have failed since: in a row, as this worker saw it. */
  readonly failures: number;
}

const GAP_MS = 100;

/** Merges what the main thread must know of connects: it hears of an endpoint, not of each connection that met it. */
export class ConnectNews {
  readonly #tell: (reports: readonly ConnectReport[]) => void;
  readonly #pending = new Map<RouteKey, Map<string, { succeeded: boolean; failures: number }>>();
  #isTimed = false;

  constructor(tell: (reports: readonly ConnectReport[]) => void) {
    this.#tell = tell;
  }

  failed(listener: RouteKey, endpoint: string): void {
    this.#of(listener, endpoint).failures += 1;
  }

  succeeded(listener: RouteKey, endpoint: string): void {
    const of = this.#of(listener, endpoint);
    of.succeeded = true;
    of.failures = 0;
  }

  /** It has left: what is not told yet would count against another one at the same address. */
  forget(listener: RouteKey, endpoint: string): void {
    this.#pending.get(listener)?.delete(endpoint);
  }

  #of(listener: RouteKey, endpoint: string): { succeeded: boolean; failures: number } {
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
    if (!this.#isTimed) {
      this.#isTimed = true;
      setTimeout(() => this.#flush(), GAP_MS).unref();
    }
    return of;
  }

  #flush(): void {
    this.#isTimed = false;
    const reports = [...this.#pending].flatMap(([listener, endpoints]) =>
      [...endpoints].map(([endpoint, of]): ConnectReport => ({ listener, endpoint, ...of })),
    );
    this.#pending.clear();
    if (reports.length > 0) this.#tell(reports);
  }
}
