import { once } from 'node:events';

/** Where a Node process that was started with `--inspect` says that its inspector listens. */
export function inspectorUrlIn(output: string): string | undefined {
  return /^Debugger listening on (ws:\/\/\S+)$/m.exec(output)?.[1];
}

type GarbageCollectionMessage = {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
};

const CONNECT_TIMEOUT_MS = 5_000;
/** A process of many gigabytes may need seconds. */
const GARBAGE_COLLECTION_TIMEOUT_MS = 60_000;

const COLLECT_GARBAGE = { method: 'HeapProfiler.collectGarbage', params: {} };

/**
 * Makes the main thread and every worker of a Node process give back what nobody refers to any more, so that its memory is what it
 * needs and not what it happens to have left lying since it started. Throws when one of them does not answer in `answerMs`, or when the
 * process has ended.
 */
export async function collectGarbage(
  inspector: string,
  { answerMs = GARBAGE_COLLECTION_TIMEOUT_MS }: { readonly answerMs?: number } = {},
): Promise<void> {
  const socket = new WebSocket(inspector);
  const over = new AbortController();
  socket.addEventListener('close', () => over.abort(new Error('the inspector has closed before it answered')));
  await once(socket, 'open', { signal: AbortSignal.any([AbortSignal.timeout(CONNECT_TIMEOUT_MS), over.signal]) });
  let last = 0;
  const waiting = new Map<string, () => void>();
  const workers: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params } = JSON.parse(String(data)) as GarbageCollectionMessage;
    if (method === 'NodeWorker.attachedToWorker' && params?.sessionId !== undefined) workers.push(params.sessionId);
    if (method === 'NodeWorker.receivedMessageFromWorker') {
      const inner = JSON.parse(params?.message ?? '{}') as GarbageCollectionMessage;
      waiting.get(`${params?.sessionId} ${inner.id}`)?.();
    }
    if (id !== undefined) waiting.get(`main ${id}`)?.();
  });
  const answered = (key: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const late = setTimeout(() => reject(new Error(`the inspector has not answered in ${answerMs} ms`)), answerMs);
    const fail = (): void => reject(over.signal.reason);
    if (over.signal.aborted) fail();
    else over.signal.addEventListener('abort', fail, { once: true });
    waiting.set(key, resolve);
    return promise.finally(() => {
      clearTimeout(late);
      over.signal.removeEventListener('abort', fail);
    });
  };
  const call = async (method: string, params: object): Promise<void> => {
    const answer = answered(`main ${++last}`);
    socket.send(JSON.stringify({ id: last, method, params }));
    await answer;
  };
  try {
    await call('NodeWorker.enable', { waitForDebuggerOnStart: false });
    await call(COLLECT_GARBAGE.method, COLLECT_GARBAGE.params);
    for (const sessionId of workers) {
      const message = JSON.stringify({ id: 1, ...COLLECT_GARBAGE });
      await Promise.all([answered(`${sessionId} 1`), call('NodeWorker.sendMessageToWorker', { sessionId, message })]);
    }
  } finally {
    socket.close();
  }
}
