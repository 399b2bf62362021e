import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMetrics } from '@weir/runtime/metrics';
import { requireProgram } from '@weir/tools';
import { addStoreMetrics } from '../../../src/store-metrics.ts';
import { type StartedRedis, startRedisWithData } from '../fixtures/redis-fixture.ts';

describe('the metrics of a store in Redis', requireProgram('redis'), () => {
  let started: StartedRedis;
  before(async () => {
    started = await startRedisWithData();
  });
  after(() => started?.close());

  test('time each call by its script or part, and count failures and reconnections', async () => {
    await using fixture = started.fixture({ timeoutMs: 300 });
    const store = await fixture.connect();
    const metrics = createMetrics();
    addStoreMetrics(metrics, () => store);
    const seriesOf = async (name: string): Promise<readonly string[]> =>
      (await metrics.render()).split('\n').filter((line) => line.startsWith(name));

    await store.heartbeats.beginIncarnation('n', 1);
    await store.heartbeats.beginIncarnation('n', 1);
    await store.heartbeats.knownNodes();
    assert.deepEqual(await seriesOf('weir_store_call_duration_seconds_count'), [
      'weir_store_call_duration_seconds_count{call="begin-life"} 2',
      'weir_store_call_duration_seconds_count{call="heartbeats"} 1',
    ]);
    const ended = new Promise<void>((resolve) => {
      store.onConnectionChange((state) => state === 'away' && resolve());
    });
    fixture.redis.pause();
    await assert.rejects(store.heartbeats.knownNodes(), { code: 'AWAY' });
    await ended;
    // A call that was not sent is not a call to Redis.
    await assert.rejects(store.heartbeats.knownNodes(), { code: 'AWAY' });
    fixture.redis.resume();
    await new Promise<void>((resolve) => {
      const stop = store.onConnectionChange((state) => {
        if (state !== 'ready') return;
        stop();
        resolve();
      });
    });
    assert.deepEqual(await seriesOf('weir_store_call_errors_total'), [
      'weir_store_call_errors_total{code="AWAY"} 1',
      'weir_store_call_errors_total{code="REFUSED"} 0',
    ]);
    assert.deepEqual(await seriesOf('weir_store_reconnects_total'), ['weir_store_reconnects_total 1']);
    assert.deepEqual(await seriesOf('weir_store_call_duration_seconds_bucket{call="heartbeats",le="+Inf"}'), [
      'weir_store_call_duration_seconds_bucket{call="heartbeats",le="+Inf"} 2',
    ]);
  });
});
