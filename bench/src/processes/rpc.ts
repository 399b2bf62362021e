// Questions to a process of ours and its answers, over the channel that Node gives to a forked child.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What can be asked, by name; arguments and answers are JSON. */
// biome-ignore lint/suspicious/noExplicitAny: any arguments, which the type parameter of whoever asks makes definite
export type RpcMethods = Record<string, (...args: any[]) => unknown>;

type RpcRequest = { readonly id: number; readonly name: string; readonly args: readonly unknown[] };
type RpcResponse = { readonly id: number; readonly value?: unknown; readonly error?: string };

const RPC_TIMEOUT_MS = 180_000;

/** A process that answers; it ends with whoever started it. */
export class RpcProcess<T extends RpcMethods> {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #pendingRequests = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #lastRequestId = 0;

  constructor(program: URL, args: readonly (string | number)[]) {
    const file = fileURLToPath(program);
    this.#name = basename(file);
    this.#child = fork(file, args.map(String), {
      execArgv: ['--conditions=source'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Ctrl-C in a terminal goes to our whole group; it is for us. It ends with us all the same, since the channel does.
      detached: true,
    });
    this.#child.on('message', (message) => this.#handleResponse(message as RpcResponse));
    this.#child.once('exit', () => {
      for (const { reject } of this.#pendingRequests.values())
        reject(new Error(`${this.#name} has ended before it answered`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  async call<K extends keyof T & string>(name: K, ...args: Parameters<T[K]>): Promise<Awaited<ReturnType<T[K]>>> {
    if (!this.#child.connected) throw new Error(`${this.#name} has ended`);
    const id = ++this.#lastRequestId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pendingRequests.set(id, { resolve, reject });
    const late = setTimeout(
      () => reject(new Error(`${this.#name} has not answered "${name}" in time`)),
      RPC_TIMEOUT_MS,
    );
    try {
      this.#child.send({ id, name, args } satisfies RpcRequest);
      return (await promise) as Awaited<ReturnType<T[K]>>;
    } finally {
      clearTimeout(late);
      this.#pendingRequests.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  #handleResponse({ id, value, error }: RpcResponse): void {
    const waiting = this.#pendingRequests.get(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(`${this.#name}: ${error}`));
  }
}

/** The other end: in the process itself. */
export function serveRpc<T extends RpcMethods>(calls: T): void {
  process.once('disconnect', () => process.exit());
  process.on('message', async ({ id, name, args }: RpcRequest) => {
    try {
      sendResponse({ id, value: await calls[name]?.(...args) });
    } catch (error) {
      sendResponse({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
}

function sendResponse(message: RpcResponse): void {
  process.send?.(message);
}
