import { type Clock, ManualClock, silentLogger, systemClock } from '@weir/runtime';
import { type ConsoleOptions, startConsole, storeSuspensionWriter } from '../../src/index.ts';
import { type SeededStore, seededStore } from './seeded-store.ts';

export interface TestConsole extends SeededStore, AsyncDisposable {
  readonly url: string;
  /** The answer to a request; `json` is undefined when it is none. */
  request(path: string, init?: RequestInit): Promise<TestResponse>;
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

/** A console over a seeded memory store, on any free port, that has read the table and the heartbeats. */
export async function startTestConsole(
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
    suspensions: storeSuspensionWriter({ cutoffs: store.suspensions, clock }),
    auth: { kind: 'none' },
    clock,
    log: silentLogger(),
    ...options,
  });
  const request = async (path: string, init?: RequestInit): Promise<TestResponse> => {
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
    request,
    async [Symbol.asyncDispose]() {
      await running.close();
      await store.close();
    },
  };
}

/** A request with a JSON body. */
export function jsonRequest(method: string, body: unknown, headers: Record<string, string> = {}): RequestInit {
  return { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
}
