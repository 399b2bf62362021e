import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { RunningConsole } from '@weir/console';
import type { MemoryStore } from '@weir/store';
import { startConsoleOf } from './fixtures/console.ts';
import { storeOf } from './fixtures/store.ts';
import { type InProcessResult, runWeirInProcess } from './fixtures/weir-in-process.ts';

describe('weir suspend', { timeout: 30_000 }, () => {
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
  const weir = (...args: string[]): Promise<InProcessResult> => runWeirInProcess(args, { WEIR_SERVER: console.url });

  test('suspends and resumes a namespace with --namespace, and leaves a tenant of the same name alone', async () => {
    const suspended = await weir('suspend', '--namespace', 'shop', '--message', 'stop');
    assert.equal(
      suspended.stdout,
      'namespace shop is suspended until resumed; `weir resume --namespace shop` lifts the cut-off\n',
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

  test('is followed by weir get suspensions with target, time, end, user and message', async () => {
    const createdAt = Date.UTC(2026, 0, 31, 18);
    const suspension = { message: '', until: null, origin: { kind: 'kubernetes' }, createdAt } as const;
    const alices = { ...suspension, uid: 'a', name: 'a', target: { kind: 'tenant', tenant: 'shop' } } as const;
    const rules = { ...suspension, uid: 'b', name: 'b', target: { kind: 'namespace', namespace: 'rival' } } as const;
    const rule = 'rule egress: outBitsPerSecond was 1.4G for 5m, above 1G';
    await store.suspensions.put({ ...alices, reason: 'SuspendedByOperator', message: 'Call us.', madeBy: 'alice' });
    await store.suspensions.put({ ...rules, reason: 'SuspendedByRule', rule });
    const tenants = (await weir('get', 'tenants')).stdout;
    assert.match(tenants, /^shop +Suspended /m);
    assert.match(
      tenants,
      /\n\nshop: Suspension a by alice since 2026-01-31T18:00:00\.000Z, until resumed: Call us\.\n$/,
    );
    const { stdout } = await weir('get', 'suspensions');
    assert.deepEqual(
      stdout
        .trimEnd()
        .split(/ *\n/)
        .map((line) => line.split(/ {3,}/)),
      [
        ['NAME', 'TARGET', 'SINCE', 'UNTIL', 'BY', 'MESSAGE'],
        ['a', 'tenant shop', '2026-01-31T18:00:00.000Z', 'resumed', 'alice', 'Call us.'],
        ['b', 'namespace rival', '2026-01-31T18:00:00.000Z', 'resumed', rule, '-'],
      ],
    );
    assert.match((await weir('get', 'suspension', '-n', 'rival', '-o', 'name')).stdout, /^suspension\/b\n$/);
    const explained = await weir('explain', 'shop/web');
    assert.match(explained.stdout, /Suspension a by alice since 2026-01-31T18:00:00.000Z, until resumed: Call us\./);
    assert.match(explained.stdout, /Call us\. \(suspended 2026-01-31T18:00:00Z by alice\)/);
    for (const uid of ['a', 'b']) await store.suspensions.remove(uid);
    assert.equal((await weir('get', 'suspensions')).stdout, 'No Suspensions.\n');
  });

  test('is recorded for weir get suspensions --past, with the resumption', async () => {
    const before = (await store.suspensions.audit()).length;
    await weir('suspend', 'rival/web', '--message', 'first', '--for', '1h');
    await weir('suspend', 'rival/web', '--message', 'second');
    await weir('resume', 'rival/web');
    const { stdout } = await weir('get', 'suspensions', '--past', '-n', 'rival');
    const lines = stdout.trimEnd().split('\n').slice(-3);
    assert.match(lines[0] ?? '', /^2\S+ +Suspended +Service rival\/web +an unknown user +2\S+ +first$/);
    assert.match(lines[1] ?? '', /^2\S+ +Suspended +Service rival\/web +an unknown user +- +second$/);
    assert.match(lines[2] ?? '', /^2\S+ +Released \(resumed\) +Service rival\/web +an unknown user +- +second$/);
    const { items } = JSON.parse((await weir('get', 'suspensions', '--past', '-o', 'json')).stdout);
    assert.equal(items.length, before + 3);
    assert.deepEqual([items.at(-1).action, items.at(-1).releasedBy], ['Released', 'an unknown user']);
    assert.match((await weir('get', 'suspensions', '--past')).stdout, /tenant shop/);
    const ofTenant = await weir('get', 'suspensions', '--past', '--tenant', 'rival');
    assert.match(ofTenant.stdout, /Service rival\/web/);
    assert.doesNotMatch(ofTenant.stdout, /tenant shop/);
    assert.equal(
      (await weir('get', 'suspensions', '--past', '--tenant', 'none')).stdout,
      'No Suspensions in the last two years.\n',
    );
    assert.match((await weir('get', 'suspensions', '--tenant', 'rival')).stderr, /--tenant is only for .* --past/);
    assert.match((await weir('get', 'services', '--past')).stderr, /--past is only for weir get suspensions/);
  });

  test('refuses a namespace that does not exist', async () => {
    const { code, stderr } = await weir('suspend', '--namespace', 'shoop', '--message', 'stop');
    assert.equal(code, 1);
    assert.match(stderr, /namespace "shoop" does not exist in this fleet/);
  });
});
