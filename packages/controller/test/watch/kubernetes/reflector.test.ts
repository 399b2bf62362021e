import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { Json, KubeApiRequest, WatchRequest } from '../../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../../src/kubernetes/kube-api-error.ts';
import { reflect } from '../../../src/watch/kubernetes/reflector.ts';

const object = (name: string, resourceVersion: string): Json => ({ metadata: { name, resourceVersion } });
const list = (names: readonly string[], metadata: object): Json => ({
  items: names.map((name) => object(name, '1')),
  metadata,
});

type ListResponse = Json | KubeApiError;
type Watch = (request: WatchRequest) => Promise<void> | void;

/** Runs a reflector against an API server that answers by a script. A watch that is missing from the script stays open. */
async function play(
  context: TestContext,
  {
    lists,
    watches = [],
    pageSize,
  }: { readonly lists: readonly ListResponse[]; readonly watches?: readonly Watch[]; readonly pageSize?: number },
) {
  const clock = new ManualClock();
  const states: string[] = [];
  const requests: string[] = [];
  const counted: string[] = [];
  const remainingLists = [...lists];
  const remainingWatches = [...watches];
  const closing = new AbortController();
  const objects = new Set<string>();
  let unlisted = new Set<string>();
  const api = {
    async request({ query = {} }: KubeApiRequest): Promise<Json> {
      requests.push(`list ${query.limit ?? 'all'}${query.continue === undefined ? '' : ` from ${query.continue}`}`);
      const response = remainingLists.shift() ?? new KubeApiError('AWAY', 'the script is over');
      if (response instanceof KubeApiError) throw response;
      return response;
    },
    async watch(request: WatchRequest): Promise<void> {
      requests.push(`watch ${request.query.resourceVersion}`);
      const watch = remainingWatches.shift();
      if (watch !== undefined) return watch(request);
      request.onOpen();
      await new Promise((_, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason)));
    },
  };
  const target = {
    listStarted: () => {
      unlisted = new Set(objects);
    },
    listCompleted: () => {
      for (const name of unlisted) objects.delete(name);
    },
    put: ({ metadata }: Json) => {
      const { name } = metadata as { name: string };
      objects.add(name);
      unlisted.delete(name);
    },
    deleted: ({ metadata }: Json) => void objects.delete((metadata as { name: string }).name),
    failureChanged: (error: KubeApiError | undefined) => {
      const state = error?.code ?? 'readable';
      if (states.at(-1) !== state) states.push(state);
    },
  };
  const options = {
    api,
    path: '/things',
    query: { labelSelector: 'x' },
    target,
    clock,
    log: silentLogger(),
    random: () => 0,
    ...(pageSize !== undefined && { pageSize }),
    observer: {
      watchEnded: (reason: string) => void counted.push(reason),
      listCompleted: (which: string) => void counted.push(which),
      staleListRefused: () => void counted.push('stale'),
    },
  };
  const running = reflect(options, closing.signal);
  context.after(async () => {
    closing.abort();
    await running;
    assert.equal(clock.pendingTimers, 0);
  });
  await clock.advance(0);
  return { clock, requests, states, counted, objects: () => [...objects].sort() };
}

describe('a reflector', () => {
  test('lists page by page, then watches from the version of the list', async (context) => {
    const { requests, objects, states } = await play(context, {
      lists: [list(['a', 'b'], { continue: 'next', resourceVersion: '7' }), list(['c'], { resourceVersion: '7' })],
    });
    assert.deepEqual(requests, ['list 500', 'list 500 from next', 'watch 7']);
    assert.deepEqual([objects(), states], [['a', 'b', 'c'], ['readable']]);
  });

  test('lists without pages after a page has expired', async (context) => {
    const { requests, objects } = await play(context, {
      lists: [
        list(['a'], { continue: 'next' }),
        new KubeApiError('GONE', 'expired'),
        list(['b'], { resourceVersion: '9' }),
      ],
    });
    assert.deepEqual(requests, ['list 500', 'list 500 from next', 'list all', 'watch 9']);
    assert.deepEqual(objects(), ['b'], 'an object that only the expired pages contain is gone');
  });

  test('starts again at the first page if pages of large objects expire', async (context) => {
    const { requests, objects } = await play(context, {
      pageSize: 50,
      lists: [
        list(['a'], { continue: 'next' }),
        new KubeApiError('GONE', 'expired'),
        list(['b'], { continue: 'more', resourceVersion: '9' }),
        list(['c'], { resourceVersion: '9' }),
      ],
    });
    assert.deepEqual(requests, ['list 50', 'list 50 from next', 'list 50', 'list 50 from more', 'watch 9']);
    assert.deepEqual(objects(), ['b', 'c']);
  });

  test('watches from the last event or bookmark after a watch ends or fails', async (context) => {
    const { requests, clock, objects, states } = await play(context, {
      lists: [list(['a'], { resourceVersion: '7' })],
      watches: [
        ({ onOpen, onEvent }) => {
          onOpen();
          onEvent('ADDED', object('b', '8'));
          onEvent('BOOKMARK', object('', '20'));
        },
        ({ onOpen, onEvent }) => {
          onOpen();
          onEvent('DELETED', object('a', '21'));
          throw new KubeApiError('AWAY', 'was cut off');
        },
      ],
    });
    await clock.advance(5_000);
    assert.deepEqual(requests, ['list 500', 'watch 7', 'watch 20', 'watch 21']);
    assert.deepEqual([objects(), states], [['b'], ['readable', 'AWAY', 'readable']]);
  });

  test('lists again when the version is too old, and drops deleted objects', async (context) => {
    const expired: Json = { kind: 'Status', code: 410, message: 'too old' };
    const { requests, objects, states } = await play(context, {
      lists: [list(['a', 'b'], { resourceVersion: '7' }), list(['b'], { resourceVersion: '30' })],
      watches: [
        ({ onOpen, onEvent }) => {
          onOpen();
          onEvent('ERROR', expired);
        },
      ],
    });
    assert.deepEqual(requests, ['list 500', 'watch 7', 'list 500', 'watch 30']);
    assert.deepEqual([objects(), states], [['b'], ['readable']]);
  });

  test('backs off while a server is unreachable, and longer when it refuses', async (context) => {
    const away = new KubeApiError('AWAY', 'refused');
    const { requests, clock, states } = await play(context, {
      lists: [away, away, new KubeApiError('FORBIDDEN', 'no'), list([], { resourceVersion: '1' })],
    });
    assert.deepEqual(requests, ['list 500']);
    await clock.advance(199);
    assert.deepEqual(requests.length, 1);
    await clock.advance(1 + 200);
    assert.deepEqual(requests.length, 3);
    await clock.advance(1_999);
    assert.deepEqual(requests.length, 3);
    await clock.advance(1);
    assert.deepEqual(requests.slice(3), ['list 500', 'watch 1']);
    assert.deepEqual(states, ['AWAY', 'FORBIDDEN', 'readable']);
  });

  test('lists again after five failures from one version', async (context) => {
    const fail: Watch = () => {
      throw new KubeApiError('AWAY', 'Too large resource version');
    };
    const { requests, clock } = await play(context, {
      lists: [list([], { resourceVersion: '900' }), list([], { resourceVersion: '901' })],
      watches: [fail, fail, fail, fail, fail],
    });
    await clock.advance(10_000);
    assert.deepEqual(requests, ['list 500', ...Array(5).fill('watch 900'), 'list 500', 'watch 901']);
  });

  test('refuses an old list until the server has caught up', async (context) => {
    const { requests, clock, objects, states, counted } = await play(context, {
      lists: [
        list(['a'], { resourceVersion: '7' }),
        list([], { continue: 'next', resourceVersion: '9' }),
        list(['a'], { resourceVersion: '9' }),
        list(['b'], { resourceVersion: '10' }),
      ],
      watches: [
        ({ onOpen, onEvent }) => {
          onOpen();
          onEvent('ADDED', object('b', '10'));
          throw new KubeApiError('GONE', 'too old');
        },
      ],
    });
    assert.deepEqual(
      [objects(), states],
      [
        ['a', 'b'],
        ['readable', 'AWAY'],
      ],
    );
    await clock.advance(1_000);
    assert.deepEqual(requests, ['list 500', 'watch 7', 'list 500', 'list 500', 'list 500', 'watch 10']);
    assert.deepEqual([objects(), states], [['b'], ['readable', 'AWAY', 'readable']]);
    assert.deepEqual(counted, ['first', 'gone', 'stale', 'stale', 'again']);
  });

  test('compares versions as numbers, and accepts versions that are not numbers', async (context) => {
    const gone: Watch = () => {
      throw new KubeApiError('GONE', 'too old');
    };
    const { requests, counted } = await play(context, {
      lists: [
        list([], { resourceVersion: '999' }),
        list([], { resourceVersion: '1000' }),
        list([], { resourceVersion: 'x7' }),
      ],
      watches: [({ onOpen }) => Promise.resolve(onOpen()).then(() => gone(undefined as never)), gone],
    });
    assert.deepEqual(requests.slice(0, 4), ['list 500', 'watch 999', 'list 500', 'watch 1000']);
    assert.ok(!counted.includes('stale'));
  });

  test('accepts an older list after two minutes, since the server was restored from a backup', async (context) => {
    const { requests, clock, objects } = await play(context, {
      lists: [
        list(['a', 'b'], { resourceVersion: '900' }),
        ...Array<Json>(1_000).fill(list(['a'], { resourceVersion: '5' })),
      ],
      watches: [
        () => {
          throw new KubeApiError('GONE', 'too old');
        },
      ],
    });
    await clock.advance(119_000);
    assert.deepEqual(objects(), ['a', 'b']);
    await clock.advance(2_000);
    assert.deepEqual([objects(), requests.at(-1)], [['a'], 'watch 5']);
  });

  test('waits for the time in Retry-After', async (context) => {
    const busy = new KubeApiError('AWAY', 'too many requests', { retryAfterMs: 4_000 });
    const { requests, clock } = await play(context, { lists: [busy, list([], { resourceVersion: '1' })] });
    await clock.advance(3_999);
    assert.deepEqual(requests, ['list 500']);
    await clock.advance(1);
    assert.deepEqual(requests, ['list 500', 'list 500', 'watch 1']);
  });
});
