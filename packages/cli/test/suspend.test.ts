import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type RunningConsole, startConsole, storeSuspensionWriter } from '@weir/console';
import { systemClock as clock, silentLogger } from '@weir/runtime';
import type { MemoryStore } from '@weir/store';
import { storeOf } from './fixtures/store.ts';
import { type InProcessResult, runWeirInProcess } from './fixtures/weir-in-process.ts';

describe('weir suspend', { timeout: 30_000 }, () => {
  let store: MemoryStore;
  let console: RunningConsole;
  before(async () => {
    store = await storeOf('rival', 'shop');
    console = await startConsole({
      store,
      fleet: 'test',
      host: '127.0.0.1',
      port: 0,
      suspensionWriter: storeSuspensionWriter({ suspensionStore: store.suspensions, clock }),
      auth: { kind: 'none' },
      clock,
      log: silentLogger(),
    });
    await console.refresh();
  });
  after(async () => {
    await console.close();
    await store.close();
  });
  const weir = (...args: string[]): Promise<InProcessResult> => runWeirInProcess(args, { WEIR_SERVER: console.url });

  test('suspends and resumes a namespace with --namespace, and leaves a tenant of the same name alone', async () => {
    const suspended = await weir('suspend', '--namespace', 'shop', '--message', 'stop');
    assert.equal(
      suspended.stdout,
      'namespace shop is suspended until resumed; `weir resume --namespace shop` ends the suspension\n',
    );
    const { suspensions } = await store.suspensions.read();
    assert.deepEqual(
      suspensions.map(({ target }) => target),
      [{ kind: 'namespace', namespace: 'shop' }],
    );
    assert.equal((await weir('resume', 'shop')).stderr, 'weir: tenant shop has no Suspension\n');
    assert.equal((await weir('resume', '-n', 'shop')).stdout, 'namespace shop is no longer suspended\n');
    assert.deepEqual((await store.suspensions.read()).suspensions, []);
  });

  test('refuses a namespace that does not exist', async () => {
    const { code, stderr } = await weir('suspend', '--namespace', 'shoop', '--message', 'stop');
    assert.equal(code, 1);
    assert.match(stderr, /namespace "shoop" does not exist in this fleet/);
  });
});
