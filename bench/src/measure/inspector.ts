import { once } from 'node:events';

// A client of Node's inspector. Reads and changes a running Node process that has no code for this purpose.
type InspectorMessage = {
  readonly id?: number;
  readonly method?: string;
  readonly error?: { readonly message: string };
  readonly result?: InspectorResult;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
};

type InspectorResult = {
  readonly result?: { readonly objectId?: string; readonly value?: unknown };
  readonly objects?: { readonly objectId?: string };
  readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description?: string } };
  readonly usedSize?: number;
};

const RESPONSE_TIMEOUT_MS = 20_000;

export class Inspector implements Disposable {
  readonly #socket: WebSocket;
  readonly #pendingRequests = new Map<string, (message: InspectorMessage) => void>();
  readonly #workerSessions = new Set<string>();
  #lastRequestId = 0;

  static async connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await once(socket, 'open', { signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    const inspector = new Inspector(socket);
    await inspector.call('NodeWorker.enable', { waitForDebuggerOnStart: false });
    return inspector;
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) =>
      this.#handleMessage(JSON.parse(String(data)) as InspectorMessage, 'main'),
    );
  }

  get workerSessions(): readonly string[] {
    return [...this.#workerSessions];
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  call(method: string, params: object = {}): Promise<InspectorResult> {
    const id = ++this.#lastRequestId;
    return this.#request(`main ${id}`, method, () => this.#socket.send(JSON.stringify({ id, method, params })));
  }

  callWorker(sessionId: string, method: string, params: object = {}): Promise<InspectorResult> {
    const id = ++this.#lastRequestId;
    const message = JSON.stringify({ id, method, params });
    const outer = JSON.stringify({
      id: ++this.#lastRequestId,
      method: 'NodeWorker.sendMessageToWorker',
      params: { sessionId, message },
    });
    return this.#request(`${sessionId} ${id}`, method, () => this.#socket.send(outer));
  }

  /** Collects garbage. Returns the bytes in use in the heap of the main thread, and in the heaps of all workers together. */
  async heapBytes(): Promise<{ readonly main: number; readonly workers: number }> {
    const used = async (call: (method: string) => Promise<InspectorResult>): Promise<number> => {
      await call('HeapProfiler.collectGarbage');
      return (await call('Runtime.getHeapUsage')).usedSize ?? 0;
    };
    const main = await used((method) => this.call(method));
    let workers = 0;
    for (const worker of this.#workerSessions) workers += await used((method) => this.callWorker(worker, method));
    return { main, workers };
  }

  #request(key: string, method: string, send: () => void): Promise<InspectorResult> {
    const { promise, resolve, reject } = Promise.withResolvers<InspectorResult>();
    const timer = setTimeout(
      () => reject(new Error(`no response to ${method} within ${RESPONSE_TIMEOUT_MS} ms`)),
      RESPONSE_TIMEOUT_MS,
    );
    this.#pendingRequests.set(key, ({ error, result = {} }) => {
      clearTimeout(timer);
      this.#pendingRequests.delete(key);
      const thrown = result.exceptionDetails;
      if (error !== undefined) reject(new Error(`${method}: ${error.message}`));
      else if (thrown !== undefined) reject(new Error(thrown.exception?.description ?? thrown.text));
      else resolve(result);
    });
    send();
    return promise;
  }

  #handleMessage({ id, method, params, ...message }: InspectorMessage, from: string): void {
    const worker = params?.sessionId ?? '';
    if (method === 'NodeWorker.attachedToWorker') this.#workerSessions.add(worker);
    if (method === 'NodeWorker.detachedFromWorker') this.#workerSessions.delete(worker);
    if (method === 'NodeWorker.receivedMessageFromWorker') {
      this.#handleMessage(JSON.parse(params?.message ?? '{}') as InspectorMessage, worker);
    }
    if (id !== undefined) this.#pendingRequests.get(`${from} ${id}`)?.({ id, ...message });
  }
}

/** Returns the URL of the inspector from the output of a Node process with `--inspect`. */
export function inspectorUrlIn(output: string): string | undefined {
  return /^Debugger listening on (ws:\/\/\S+)$/m.exec(output)?.[1];
}

type GarbageCollectionMessage = {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
};

const CONNECT_TIMEOUT_MS = 5_000;
/** Long, because collecting the garbage of a large heap may take seconds. */
const GARBAGE_COLLECTION_TIMEOUT_MS = 60_000;
const COLLECT_GARBAGE = { method: 'HeapProfiler.collectGarbage', params: {} };

/** Collects the garbage of the main thread and of every worker of a Node process. Throws on a timeout, or if the process ends. */
export async function collectGarbage(
  inspector: string,
  { timeoutMs = GARBAGE_COLLECTION_TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Promise<void> {
  const socket = new WebSocket(inspector);
  const closed = new AbortController();
  socket.addEventListener('close', () => closed.abort(new Error('the inspector closed before it responded')));
  await once(socket, 'open', { signal: AbortSignal.any([AbortSignal.timeout(CONNECT_TIMEOUT_MS), closed.signal]) });
  let lastId = 0;
  const pending = new Map<string, () => void>();
  const workers: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params } = JSON.parse(String(data)) as GarbageCollectionMessage;
    if (method === 'NodeWorker.attachedToWorker' && params?.sessionId !== undefined) workers.push(params.sessionId);
    if (method === 'NodeWorker.receivedMessageFromWorker') {
      const inner = JSON.parse(params?.message ?? '{}') as GarbageCollectionMessage;
      pending.get(`${params?.sessionId} ${inner.id}`)?.();
    }
    if (id !== undefined) pending.get(`main ${id}`)?.();
  });
  const responseTo = (key: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => reject(new Error(`the inspector did not respond within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const fail = (): void => reject(closed.signal.reason);
    if (closed.signal.aborted) fail();
    else closed.signal.addEventListener('abort', fail, { once: true });
    pending.set(key, resolve);
    return promise.finally(() => {
      clearTimeout(timer);
      closed.signal.removeEventListener('abort', fail);
    });
  };
  const call = async (method: string, params: object): Promise<void> => {
    const response = responseTo(`main ${++lastId}`);
    socket.send(JSON.stringify({ id: lastId, method, params }));
    await response;
  };
  try {
    await call('NodeWorker.enable', { waitForDebuggerOnStart: false });
    await call(COLLECT_GARBAGE.method, COLLECT_GARBAGE.params);
    for (const sessionId of workers) {
      const message = JSON.stringify({ id: 1, ...COLLECT_GARBAGE });
      await Promise.all([responseTo(`${sessionId} 1`), call('NodeWorker.sendMessageToWorker', { sessionId, message })]);
    }
  } finally {
    socket.close();
  }
}
