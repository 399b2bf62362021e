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

test('starts parts one after another in the listed order and closes them in reverse order', async () => {
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

test('closes each part once although close is called twice', async () => {
  const { events, part } = story();
  const running = await startParts([part('store')], options);
  await Promise.all([running.close(), running.close()]);
  await running.close();
  assert.deepEqual(events, ['start store', 'close store']);
});

test('closes the started parts if a part fails to start, and names the part in the error', async () => {
  const { events, part } = story();
  const broken = part('admin', { start: () => Promise.reject(new Error('port in use')) });
  await assert.rejects(startParts([part('store'), part('loop'), broken, part('never')], options), {
    code: 'START_FAILED',
    message: 'admin: port in use',
  });
  assert.deepEqual(events, ['start store', 'start loop', 'start admin', 'close loop', 'close store']);
});

test('throws a usage error unchanged', async () => {
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

test('closes the started parts and starts no other part on an abort', async () => {
  const { events, part } = story();
  const abort = new AbortController();
  const first = part('store', { start: () => abort.abort() });
  await assert.rejects(
    startParts([first, part('loop')], { log: silentLogger(), signal: abort.signal }),
    abort.signal.reason,
  );
  assert.deepEqual(events, ['start store', 'close store']);
});

test('closes the remaining parts if a part fails to close', async () => {
  const { events, part } = story();
  const stuck = part('loop', { close: () => Promise.reject(new Error('stuck')) });
  const running = await startParts([part('store'), stuck, part('admin')], options);
  await assert.rejects(running.close(), { code: 'CLOSE_FAILED', message: 'failed to close: loop' });
  assert.deepEqual(events.slice(3), ['close admin', 'close loop', 'close store']);
});
