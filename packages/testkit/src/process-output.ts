import type { Readable } from 'node:stream';

/** Of what a long-lived program writes only the end is kept. */
const longest = 8 * 1024 * 1024;

/** What a process writes, as text, and who waits for something in it. */
export class ProcessOutput {
  #all = '';
  #stdout = '';
  #over: string | undefined;
  readonly #name: string;
  readonly #watchers = new Set<() => void>();

  constructor(name: string, streams: { stdout: Readable; stderr: Readable }) {
    this.#name = name;
    streams.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-longest);
      this.add(text);
    });
    streams.stderr.setEncoding('utf8').on('data', (text: string) => this.add(text));
  }

  get all(): string {
    return this.#all;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get tail(): string {
    return this.#all.trimEnd().split('\n').slice(-30).join('\n');
  }

  add(text: string): void {
    this.#all = (this.#all + text).slice(-longest);
    for (const check of this.#watchers) check();
  }

  /** No more will come; `how` says why. Whoever still waits fails. */
  end(how: string): void {
    this.#over = how;
    for (const check of this.#watchers) check();
  }

  async shows(what: RegExp | ((output: string) => boolean), options: { timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs = 30_000 } = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (why: string): void => reject(new Error(`${this.#name} ${why}:\n${this.tail}`));
    const check = (): void => {
      if (what instanceof RegExp ? what.test(this.#all) : what(this.#all)) resolve();
      else if (this.#over !== undefined) fail(`ended before it showed ${what}, ${this.#over}`);
    };
    const timer = setTimeout(() => fail(`has not shown ${what} in ${timeoutMs} ms`), timeoutMs);
    this.#watchers.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#watchers.delete(check);
    }
  }
}
