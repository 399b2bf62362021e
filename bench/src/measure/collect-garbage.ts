import { once } from 'node:events';

/** Where a Node process that was started with `--inspect` says that its inspector listens. */
export function inspectorIn(output: string): string | undefined {
  return /^Debugger listening on (ws:\/\/\S+)$/m.exec(output)?.[1];
}

type Message = {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
};

const collect = { method: 'HeapProfiler.collectGarbage', params: {} };

/**
 * Makes the main thread and every worker of a Node process give back what nobody refers to any more, so that its memory is what it
 * needs and not what it happens to have left lying since it started.
 */
export async function collectGarbage(inspector: string): Promise<void> {
  const socket = new WebSocket(inspector);
  await once(socket, 'open', { signal: AbortSignal.timeout(5_000) });
  let last = 0;
  const waiting = new Map<string, () => void>();
  const workers: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params } = JSON.parse(String(data)) as Message;
    if (method === 'NodeWorker.attachedToWorker' && params?.sessionId !== undefined) workers.push(params.sessionId);
    if (method === 'NodeWorker.receivedMessageFromWorker') {
      const inner = JSON.parse(params?.message ?? '{}') as Message;
      waiting.get(`${params?.sessionId} ${inner.id}`)?.();
    }
    if (id !== undefined) waiting.get(`main ${id}`)?.();
  });
  const answered = (key: string): Promise<void> => new Promise((resolve) => waiting.set(key, resolve));
  const call = async (method: string, params: object): Promise<void> => {
    const answer = answered(`main ${++last}`);
    socket.send(JSON.stringify({ id: last, method, params }));
    await answer;
  };
  try {
    await call('NodeWorker.enable', { waitForDebuggerOnStart: false });
    await call(collect.method, collect.params);
    for (const sessionId of workers) {
      const answer = answered(`${sessionId} 1`);
      await call('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id: 1, ...collect }) });
      await answer;
    }
  } finally {
    socket.close();
  }
}
