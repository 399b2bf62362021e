import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import type { ApiRequest, Json, WatchRequest } from '../../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../../src/kubernetes/kube-api-error.ts';
import { reflect } from '../../../src/watch/kubernetes/reflector.ts';

const object = (name: string, resourceVersion: string): Json => ({ metadata: { name, resourceVersion } });
const list = (names: readonly string[], metadata: object): Json => ({
  items: names.map((name) => object(name, '1')),
  metadata,
});

type Answer = Json | KubeApiError;
type Watch = (request: WatchRequest) => Promise<void> | void;

/** An API server that answers by a script; a watch without one stays open. */
async function play(
  context: TestContext,
  {
    lists,
    watches = [],
    pageSize,
  }: { readonly lists: readonly Answer[]; readonly watches?: readonly Watch[]; readonly pageSize?: number },
) {
  const clock = new ManualClock();
  const heard: string[] = [];
  const asked: string[] = [];
  const counted: string[] = [];
  const listAnswers = [...lists];
  const watchAnswers = [...watches];
  const closing = new AbortController();
  const objects = new Set<string>();
  let unlisted = new Set<string>();
  const api = {
    async request({ query = {} }: ApiRequest): Promise<Json> {
      asked.push(`list ${query.limit ?? 'all'}${query.continue === undefined ? '' : ` from ${query.continue}`}`);
      const answer = listAnswers.shift() ?? new KubeApiError('AWAY', 'the script is over');
      if (answer instanceof KubeApiError) throw answer;
      return answer;
    },
    async watch(request: WatchRequest): Promise<void> {
      asked.push(`watch ${request.query.resourceVersion}`);
      const watch = watchAnswers.shift();
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
      const said = error?.code ?? 'well';
      if (heard.at(-1) !== said) heard.push(said);
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
  return { clock, asked, heard, counted, objects: () => [...objects].sort() };
}

describe('watching a kind', () => {
  test('lists page by page, then watches from where the list was', async (context) => {
    const { asked, objects, heard } = await play(context, {
      lists: [list(['a', 'b'], { continue: 'next', resourceVersion: '7' }), list(['c'], { resourceVersion: '7' })],
    });
    assert.deepEqual(asked, ['list 500', 'list 500 from next', 'watch 7']);
    assert.deepEqual([objects(), heard], [['a', 'b', 'c'], ['well']]);
  });

  test('lists in one piece when the pages expire on the way', async (context) => {
    const { asked, objects } = await play(context, {
      lists: [
        list(['a'], { continue: 'next' }),
        new KubeApiError('GONE', 'expired'),
        list(['b'], { resourceVersion: '9' }),
      ],
    });
    assert.deepEqual(asked, ['list 500', 'list 500 from next', 'list all', 'watch 9']);
    assert.deepEqual(objects(), ['b'], 'what the first pages held and the whole list does not is gone');
  });

  test('never lists long objects in one piece, and begins with the first page again', async (context) => {
    const { asked, objects } = await play(context, {
      pageSize: 50,
      lists: [
        list(['a'], { continue: 'next' }),
        new KubeApiError('GONE', 'expired'),
        list(['b'], { continue: 'more', resourceVersion: '9' }),
        list(['c'], { resourceVersion: '9' }),
      ],
    });
    assert.deepEqual(asked, ['list 50', 'list 50 from next', 'list 50', 'list 50 from more', 'watch 9']);
    assert.deepEqual(objects(), ['b', 'c']);
  });

  test('goes on from the last event or bookmark when the watch ends or breaks off', async (context) => {
    const { asked, clock, objects, heard } = await play(context, {
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
          throw new KubeApiError('AWAY', 'broke off');
        },
      ],
    });
    await clock.advance(5_000);
    assert.deepEqual(asked, ['list 500', 'watch 7', 'watch 20', 'watch 21']);
    assert.deepEqual([objects(), heard], [['b'], ['well', 'AWAY', 'well']]);
  });

  test('lists again when the history does not go back so far, and then knows what is gone', async (context) => {
    const expired: Json = { kind: 'Status', code: 410, message: 'too old' };
    const { asked, objects, heard } = await play(context, {
      lists: [list(['a', 'b'], { resourceVersion: '7' }), list(['b'], { resourceVersion: '30' })],
      watches: [
        ({ onOpen, onEvent }) => {
          onOpen();
          onEvent('ERROR', expired);
        },
      ],
    });
    assert.deepEqual(asked, ['list 500', 'watch 7', 'list 500', 'watch 30']);
    assert.deepEqual([objects(), heard], [['b'], ['well']]);
  });

  test('waits longer and longer for a server that is away, and asks a refusing one at leisure', async (context) => {
    const away = new KubeApiError('AWAY', 'refused');
    const { asked, clock, heard } = await play(context, {
      lists: [away, away, new KubeApiError('FORBIDDEN', 'no'), list([], { resourceVersion: '1' })],
    });
    assert.deepEqual(asked, ['list 500']);
    await clock.advance(199);
    assert.deepEqual(asked.length, 1);
    await clock.advance(1 + 200);
    assert.deepEqual(asked.length, 3);
    await clock.advance(1_999);
    assert.deepEqual(asked.length, 3);
    await clock.advance(1);
    assert.deepEqual(asked.slice(3), ['list 500', 'watch 1']);
    assert.deepEqual(heard, ['AWAY', 'FORBIDDEN', 'well']);
  });

  test('begins anew after a few failures from one version', async (context) => {
    const fail: Watch = () => {
      throw new KubeApiError('AWAY', 'Too large resource version');
    };
    const { asked, clock } = await play(context, {
      lists: [list([], { resourceVersion: '900' }), list([], { resourceVersion: '901' })],
      watches: [fail, fail, fail, fail, fail],
    });
    await clock.advance(10_000);
    assert.deepEqual(asked, ['list 500', ...Array(5).fill('watch 900'), 'list 500', 'watch 901']);
  });

  test('does not take a list that is older than what it knows, until the server has caught up', async (context) => {
    const { asked, clock, objects, heard, counted } = await play(context, {
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
      [objects(), heard],
      [
        ['a', 'b'],
        ['well', 'AWAY'],
      ],
    );
    await clock.advance(1_000);
    assert.deepEqual(asked, ['list 500', 'watch 7', 'list 500', 'list 500', 'list 500', 'watch 10']);
    assert.deepEqual([objects(), heard], [['b'], ['well', 'AWAY', 'well']]);
    assert.deepEqual(counted, ['first', 'gone', 'stale', 'stale', 'again']);
  });

  test('compares versions as numbers, and what is no number not at all', async (context) => {
    const gone: Watch = () => {
      throw new KubeApiError('GONE', 'too old');
    };
    const { asked, counted } = await play(context, {
      lists: [
        list([], { resourceVersion: '999' }),
        list([], { resourceVersion: '1000' }),
        list([], { resourceVersion: 'x7' }),
      ],
      watches: [({ onOpen }) => Promise.resolve(onOpen()).then(() => gone(undefined as never)), gone],
    });
    assert.deepEqual(asked.slice(0, 4), ['list 500', 'watch 999', 'list 500', 'watch 1000']);
    assert.ok(!counted.includes('stale'));
  });

  test('takes what is older after two minutes: the server was restored from a backup', async (context) => {
    const { asked, clock, objects } = await play(context, {
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
    assert.deepEqual([objects(), asked.at(-1)], [['a'], 'watch 5']);
  });

  test('does not ask a server that is busy before the time that it names', async (context) => {
    const busy = new KubeApiError('AWAY', 'too many requests', { retryAfterMs: 4_000 });
    const { asked, clock } = await play(context, { lists: [busy, list([], { resourceVersion: '1' })] });
    await clock.advance(3_999);
    assert.deepEqual(asked, ['list 500']);
    await clock.advance(1);
    assert.deepEqual(asked, ['list 500', 'list 500', 'watch 1']);
  });
});
