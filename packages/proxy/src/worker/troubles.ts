type ErrorKind = 'accept' | 'internal';

const MAX_REPORTS_PER_TICK = 5;

/** What went wrong, told to the main thread's log, but never faster than a person can read: a bug may strike every connection. */
export class ErrorReporter {
  readonly #send: (what: ErrorKind, text: string) => void;
  #reportsThisTick = 0;

  constructor(tell: (what: ErrorKind, text: string) => void) {
    this.#send = tell;
  }

  report(what: ErrorKind, thrown: unknown): void {
    this.#reportsThisTick += 1;
    if (this.#reportsThisTick > MAX_REPORTS_PER_TICK) return;
    this.#send(what, thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown));
  }

  tick(): void {
    this.#reportsThisTick = 0;
  }
}
