// Remote procedure calls to a child process over the IPC channel of child_process.fork().
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Methods by name. Arguments and results must be representable as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the type parameter of the caller defines the arguments
export type RpcMethods = Record<string, (...args: any[]) => unknown>;

type RpcRequest = { readonly id: number; readonly name: string; readonly args: readonly unknown[] };
type RpcResponse = { readonly id: number; readonly value?: unknown; readonly error?: string };

const RPC_TIMEOUT_MS = 180_000;

/** A child process whose methods the parent can call. The child process ends when its parent ends. */
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
      // a separate process group, because Ctrl-C in a terminal must signal only the parent; the child ends when its IPC channel closes
      detached: true,
    });
    this.#child.on('message', (message) => this.#handleResponse(message as RpcResponse));
    this.#child.once('exit', () => {
      for (const { reject } of this.#pendingRequests.values())
        reject(new Error(`${this.#name} ended before it responded`));
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
    const timer = setTimeout(
      () => reject(new Error(`${this.#name} did not respond to "${name}" in time`)),
      RPC_TIMEOUT_MS,
    );
    try {
      this.#child.send({ id, name, args } satisfies RpcRequest);
      return (await promise) as Awaited<ReturnType<T[K]>>;
    } finally {
      clearTimeout(timer);
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
    const pending = this.#pendingRequests.get(id);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(new Error(`${this.#name}: ${error}`));
  }
}

/** Serves the methods in the child process. */
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
