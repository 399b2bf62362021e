// The proxy's own inspector: what it counts is asked of it without a line of its code, and a worker is ended from outside.
import { once } from 'node:events';

type Message = {
  readonly id?: number;
  readonly method?: string;
  readonly error?: { readonly message: string };
  readonly result?: Result;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
};

type Result = {
  readonly result?: { readonly objectId?: string; readonly value?: unknown };
  readonly objects?: { readonly objectId?: string };
  readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description?: string } };
  readonly usedSize?: number;
};

const waitMs = 20_000;

export class Inspector implements Disposable {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<string, (message: Message) => void>();
  readonly #workers = new Set<string>();
  #last = 0;

  static async connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await once(socket, 'open', { signal: AbortSignal.timeout(waitMs) });
    const inspector = new Inspector(socket);
    await inspector.call('NodeWorker.enable', { waitForDebuggerOnStart: false });
    return inspector;
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data)) as Message, 'main'));
  }

  get workers(): readonly string[] {
    return [...this.#workers];
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  call(method: string, params: object = {}): Promise<Result> {
    const id = ++this.#last;
    return this.#answer(`main ${id}`, method, () => this.#socket.send(JSON.stringify({ id, method, params })));
  }

  callWorker(sessionId: string, method: string, params: object = {}): Promise<Result> {
    const id = ++this.#last;
    const message = JSON.stringify({ id, method, params });
    const outer = JSON.stringify({
      id: ++this.#last,
      method: 'NodeWorker.sendMessageToWorker',
      params: { sessionId, message },
    });
    return this.#answer(`${sessionId} ${id}`, method, () => this.#socket.send(outer));
  }

  /** Bytes in use after collecting garbage: of the main thread, and of all workers together. */
  async heapBytes(): Promise<{ readonly main: number; readonly workers: number }> {
    const used = async (call: (method: string) => Promise<Result>): Promise<number> => {
      await call('HeapProfiler.collectGarbage');
      return (await call('Runtime.getHeapUsage')).usedSize ?? 0;
    };
    const main = await used((method) => this.call(method));
    let workers = 0;
    for (const worker of this.#workers) workers += await used((method) => this.callWorker(worker, method));
    return { main, workers };
  }

  #answer(key: string, method: string, send: () => void): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const timer = setTimeout(() => reject(new Error(`${method} was not answered in ${waitMs} ms`)), waitMs);
    this.#waiting.set(key, ({ error, result = {} }) => {
      clearTimeout(timer);
      this.#waiting.delete(key);
      const thrown = result.exceptionDetails;
      if (error !== undefined) reject(new Error(`${method}: ${error.message}`));
      else if (thrown !== undefined) reject(new Error(thrown.exception?.description ?? thrown.text));
      else resolve(result);
    });
    send();
    return promise;
  }

  #take({ id, method, params, ...message }: Message, from: string): void {
    const worker = params?.sessionId ?? '';
    if (method === 'NodeWorker.attachedToWorker') this.#workers.add(worker);
    if (method === 'NodeWorker.detachedFromWorker') this.#workers.delete(worker);
    if (method === 'NodeWorker.receivedMessageFromWorker') {
      this.#take(JSON.parse(params?.message ?? '{}') as Message, worker);
    }
    if (id !== undefined) this.#waiting.get(`${from} ${id}`)?.({ id, ...message });
  }
}
