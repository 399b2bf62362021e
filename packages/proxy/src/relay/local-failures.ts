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
