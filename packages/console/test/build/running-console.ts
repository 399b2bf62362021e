import { type Clock, ManualClock, silentLogger, systemClock } from '@weir/runtime';
import { type ConsoleOptions, startConsole, storeSuspensions } from '../../src/index.ts';
import { type SeededStore, seededStore } from './seeded-store.ts';

export interface TestConsole extends SeededStore, AsyncDisposable {
  readonly url: string;
  /** The answer to a request; `json` is undefined when it is none. */
  ask(path: string, init?: RequestInit): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

/** A console over a seeded memory store, on any free port, that has read the table and the heartbeats. */
export async function runningConsole(
  options: Partial<ConsoleOptions> & { readonly seeded?: SeededStore; readonly clock?: Clock } = {},
): Promise<TestConsole> {
  const clock = options.clock ?? systemClock;
  // In a store whose time stands no heartbeat runs out, however long a busy machine takes.
  const seeded = options.seeded ?? (await seededStore(options.clock ?? new ManualClock(Date.now())));
  const { store } = seeded;
  const running = await startConsole({
    store,
    fleet: 'test',
    host: '127.0.0.1',
    port: 0,
    suspensions: storeSuspensions({ cutoffs: store.cutoffs, clock }),
    auth: { kind: 'none' },
    clock,
    log: silentLogger(),
    ...options,
  });
  const ask = async (path: string, init?: RequestInit): Promise<Answer> => {
    const response = await fetch(new URL(path, running.url), init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    };
  };
  return {
    ...seeded,
    url: running.url,
    ask,
    async [Symbol.asyncDispose]() {
      await running.close();
      await store.close();
    },
  };
}

/** A request with a JSON body. */
export function sending(method: string, body: unknown, headers: Record<string, string> = {}): RequestInit {
  return { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
}
