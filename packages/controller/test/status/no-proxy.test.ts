import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { heartbeat } from '../fixtures/controller-harness.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';
import { runWithHeartbeats as run, startReportedStatus as start } from '../fixtures/reported-status.ts';

const a = heartbeat('a', ['uid-web']);
const b = heartbeat('b', ['uid-web']);

describe('a Service while all its proxies are silent', () => {
  test('keeps the addresses and says since when no proxy was heard, until a proxy returns', async (context) => {
    const harness = await start(context);
    await run(harness, 15, [a, b]);
    const diedAt = harness.clock.now();
    await run(harness, 10, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed'], 'both proxies may only have restarted');
    await run(harness, 900, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 NoProxy']);
    const conditions = harness.conditions();
    assert.deepEqual(
      conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
      ['Accepted True Accepted', 'Programmed Unknown NoProxy', 'Degraded True NoProxy'],
    );
    const since = conditions[1]?.since ?? 0;
    assert.ok(since >= diedAt && since <= diedAt + 5_000, 'the heartbeats expire after 3 s');
    const text = new Date(since).toISOString().slice(0, 19);
    assert.match(
      conditions[1]?.message ?? '',
      new RegExp(`has sent a heartbeat since ${text}Z .nodes a, b., .* stay publ`),
    );
    await run(harness, 1, [b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.2 Programmed']);
  });

  test('keeps the time under a new leader, which reads the time from the status', async (context) => {
    const clock = new ManualClock();
    const noProxySince = clock.now() - 900_000;
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1'], noProxySince })];
    const nodes = [nodeObject('a', '10.0.0.1')];
    const harness = await start(context, { clock, source: new FakeSource({ nodes, services }) });
    await run(harness, 1, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 NoProxy']);
    assert.equal(harness.conditions()[1]?.since, noProxySince);
    await run(harness, 1, [a]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 Programmed']);
  });

  test('is not affected by a proxy that failed to open a port before it became silent', async (context) => {
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const harness = await start(context, { source: new FakeSource({ nodes, services }) });
    const listeners = b.listeners.map((each) => ({ ...each, bound: false, listening: false, error: 'port in use' }));
    await run(harness, 15, [a, { ...b, listeners }]);
    await run(harness, 15, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 NoProxy']);
  });

  test('does not change while the store is unreachable', async (context) => {
    const harness = await start(context);
    await run(harness, 15, [a, b]);
    harness.store.faults.goAway();
    await harness.advance(600_000);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    harness.store.faults.comeBack();
    await run(harness, 5, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    await run(harness, 20, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 NoProxy']);
  });
});
