// Questions to a process of ours and its answers, over the channel that Node gives to a forked child.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What can be asked, by name; arguments and answers are JSON. */
// biome-ignore lint/suspicious/noExplicitAny: any arguments, which the type parameter of whoever asks makes definite
export type Calls = Record<string, (...args: any[]) => unknown>;

type Question = { readonly id: number; readonly name: string; readonly args: readonly unknown[] };
type Answer = { readonly id: number; readonly value?: unknown; readonly error?: string };

const longestMs = 180_000;

/** A process that answers; it ends with whoever started it. */
export class Answering<T extends Calls> {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #last = 0;

  constructor(program: URL, args: readonly (string | number)[]) {
    const file = fileURLToPath(program);
    this.#name = basename(file);
    this.#child = fork(file, args.map(String), {
      execArgv: ['--conditions=source'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Ctrl-C in a terminal goes to our whole group; it is for us. It ends with us all the same, since the channel does.
      detached: true,
    });
    this.#child.on('message', (message) => this.#take(message as Answer));
    this.#child.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${this.#name} has ended before it answered`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  async call<K extends keyof T & string>(name: K, ...args: Parameters<T[K]>): Promise<Awaited<ReturnType<T[K]>>> {
    if (!this.#child.connected) throw new Error(`${this.#name} has ended`);
    const id = ++this.#last;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    const late = setTimeout(() => reject(new Error(`${this.#name} has not answered "${name}" in time`)), longestMs);
    try {
      this.#child.send({ id, name, args } satisfies Question);
      return (await promise) as Awaited<ReturnType<T[K]>>;
    } finally {
      clearTimeout(late);
      this.#waiting.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  #take({ id, value, error }: Answer): void {
    const waiting = this.#waiting.get(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(`${this.#name}: ${error}`));
  }
}

/** The other end: in the process itself. */
export function answer<T extends Calls>(calls: T): void {
  process.once('disconnect', () => process.exit());
  process.on('message', async ({ id, name, args }: Question) => {
    try {
      send({ id, value: await calls[name]?.(...args) });
    } catch (error) {
      send({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
}

function send(message: Answer): void {
  process.send?.(message);
}
