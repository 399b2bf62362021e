type What = 'accept' | 'internal';

const PER_TICK = 5;

/** What went wrong, told to the main thread's log, but never faster than a person can read: a bug may strike every connection. */
export class Troubles {
  readonly #tell: (what: What, text: string) => void;
  #told = 0;

  constructor(tell: (what: What, text: string) => void) {
    this.#tell = tell;
  }

  report(what: What, thrown: unknown): void {
    this.#told += 1;
    if (this.#told > PER_TICK) return;
    this.#tell(what, thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown));
  }

  tick(): void {
    this.#told = 0;
  }
}
