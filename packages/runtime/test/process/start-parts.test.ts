import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Part, silentLogger, startParts, UsageError } from '../../src/index.ts';

interface Story {
  readonly events: string[];
  part(name: string, does?: Partial<Pick<Part, 'start' | 'close'>>): Part;
}

function story(): Story {
  const events: string[] = [];
  return {
    events,
    part: (name, does = {}) => ({
      name,
      async start(signal) {
        events.push(`start ${name}`);
        await does.start?.(signal);
      },
      async close() {
        events.push(`close ${name}`);
        await does.close?.();
      },
    }),
  };
}

const options = { log: silentLogger(), signal: new AbortController().signal };

test('parts start in the listed order, one after the other, and close in reverse', async () => {
  const { events, part } = story();
  const slow = part('store', {
    start: async () => {
      await Promise.resolve();
      events.push('store works');
    },
  });
  const running = await startParts([slow, part('loop'), part('admin')], options);
  await running.close();
  const closing = ['close admin', 'close loop', 'close store'];
  assert.deepEqual(events, ['start store', 'store works', 'start loop', 'start admin', ...closing]);
});

test('closing twice closes once', async () => {
  const { events, part } = story();
  const running = await startParts([part('store')], options);
  await Promise.all([running.close(), running.close()]);
  await running.close();
  assert.deepEqual(events, ['start store', 'close store']);
});

test('a part that fails to start closes those before it, and the error names it', async () => {
  const { events, part } = story();
  const broken = part('admin', { start: () => Promise.reject(new Error('port in use')) });
  await assert.rejects(startParts([part('store'), part('loop'), broken, part('never')], options), {
    code: 'START_FAILED',
    message: 'admin: port in use',
  });
  assert.deepEqual(events, ['start store', 'start loop', 'start admin', 'close loop', 'close store']);
});

test('a usage error comes through as it is', async () => {
  const error = new UsageError('no such directory');
  const broken: Part = {
    name: 'source',
    start: () => {
      throw error;
    },
    close: () => {},
  };
  await assert.rejects(startParts([broken], options), error);
});

test('an abort between two parts closes the first and starts no other', async () => {
  const { events, part } = story();
  const abort = new AbortController();
  const first = part('store', { start: () => abort.abort() });
  await assert.rejects(
    startParts([first, part('loop')], { log: silentLogger(), signal: abort.signal }),
    abort.signal.reason,
  );
  assert.deepEqual(events, ['start store', 'close store']);
});

test('a part that fails to close does not keep the others open', async () => {
  const { events, part } = story();
  const stuck = part('loop', { close: () => Promise.reject(new Error('stuck')) });
  const running = await startParts([part('store'), stuck, part('admin')], options);
  await assert.rejects(running.close(), { code: 'CLOSE_FAILED', message: 'failed to close: loop' });
  assert.deepEqual(events.slice(3), ['close admin', 'close loop', 'close store']);
});
