import type { Readable } from 'node:stream';

/** Of what a long-lived program writes only the end is kept. */
const MAX_OUTPUT_CHARACTERS = 8 * 1024 * 1024;

/** What a process writes, as text, and who waits for something in it. */
export class ProcessOutput {
  #combined = '';
  #stdout = '';
  #endReason: string | undefined;
  readonly #name: string;
  readonly #listeners = new Set<() => void>();

  constructor(name: string, streams: { stdout: Readable; stderr: Readable }) {
    this.#name = name;
    streams.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-MAX_OUTPUT_CHARACTERS);
      this.append(text);
    });
    streams.stderr.setEncoding('utf8').on('data', (text: string) => this.append(text));
  }

  get combined(): string {
    return this.#combined;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get tail(): string {
    return this.#combined.trimEnd().split('\n').slice(-30).join('\n');
  }

  append(text: string): void {
    this.#combined = (this.#combined + text).slice(-MAX_OUTPUT_CHARACTERS);
    for (const check of this.#listeners) check();
  }

  /** No more will come; `how` says why. Whoever still waits fails. */
  end(how: string): void {
    this.#endReason = how;
    for (const check of this.#listeners) check();
  }

  async waitFor(what: RegExp | ((output: string) => boolean), options: { timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs = 30_000 } = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (why: string): void => reject(new Error(`${this.#name} ${why}:\n${this.tail}`));
    const check = (): void => {
      if (what instanceof RegExp ? what.test(this.#combined) : what(this.#combined)) resolve();
      else if (this.#endReason !== undefined) fail(`ended before it showed ${what}, ${this.#endReason}`);
    };
    const timer = setTimeout(() => fail(`has not shown ${what} in ${timeoutMs} ms`), timeoutMs);
    this.#listeners.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#listeners.delete(check);
    }
  }
}
