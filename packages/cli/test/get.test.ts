import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { RunningConsole } from '@weir/console';
import type { MemoryStore } from '@weir/store';
import { startConsoleOf } from './fixtures/console.ts';
import { storeOf } from './fixtures/store.ts';
import { type InProcessResult, runWeirInProcess, runWeirOnTerminal } from './fixtures/weir-in-process.ts';

describe('weir get', { timeout: 30_000 }, () => {
  let store: MemoryStore;
  let console: RunningConsole;
  before(async () => {
    store = await storeOf('rival', 'shop');
    console = await startConsoleOf(store);
    await console.refresh();
  });
  after(async () => {
    await console.close();
    await store.close();
  });
  const get = (...args: string[]): Promise<InProcessResult> =>
    runWeirInProcess(['get', ...args], { WEIR_SERVER: console.url });

  for (const kind of ['service', 'services', 'svc']) {
    test(`accepts ${kind}`, async () => {
      assert.equal((await get(kind, '-o', 'name')).stdout, 'service/rival/web\nservice/shop/web\n');
    });
  }

  test('shows one namespace with -n, and one object by its name', async () => {
    assert.equal((await get('svc', '-n', 'shop', '-o', 'name')).stdout, 'service/shop/web\n');
    assert.equal((await get('svc', 'web', '-n', 'shop', '-o', 'name')).stdout, 'service/shop/web\n');
    assert.equal((await get('svc', 'rival/web', '-o', 'name')).stdout, 'service/rival/web\n');
    assert.equal((await get('tenant', 'shop', '-A', '-o', 'name')).stdout, 'tenant/shop\n');
  });

  test('says that a name does not exist', async () => {
    const { code, stderr } = await get('svc', 'wbe', '-n', 'shop');
    assert.equal(code, 1);
    assert.equal(stderr, 'weir: no service "wbe" in namespace "shop"; `weir get services` lists all\n');
  });

  test('adds nodes and UID with -o wide', async () => {
    assert.match((await get('svc', '-o', 'wide')).stdout, /^NAMESPACE.*REASON +NODES +UID\n.*uid-of-rival\n/);
  });

  test('prints the Services that change with -w', async () => {
    const stopping = new AbortController();
    const env = { WEIR_SERVER: console.url };
    const onOutput = (stdout: string): void => {
      if (stdout === 'service/rival/web\nservice/shop/web\n') void suspend();
      if (stdout.endsWith('web\nservice/shop/web\nservice/shop/web\n')) stopping.abort();
    };
    const suspend = (): Promise<InProcessResult> => runWeirInProcess(['suspend', 'shop/web', '--message', 'stop'], env);
    const { code, stdout } = await runWeirOnTerminal({ env, onOutput, signal: stopping.signal }, [
      'get',
      'svc',
      '-w',
      '-o',
      'name',
    ]);
    assert.equal(code, 0);
    assert.equal(stdout, 'service/rival/web\nservice/shop/web\nservice/shop/web\n');
  });
});

test('weir version prints the version of the command', async () => {
  const { stdout } = await runWeirInProcess(['version', '-o', 'json']);
  assert.deepEqual(Object.keys(JSON.parse(stdout)), ['version', 'node']);
  assert.match((await runWeirInProcess(['version'])).stdout, /^weir \d+\.\d+\.\d+ \(Node\.js /);
});
