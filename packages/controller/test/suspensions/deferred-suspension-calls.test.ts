import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger, ManualClock } from '@weir/runtime';
import { servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

describe('deferred calls to the API server', () => {
  test('do not delay the table while the API server hangs', async (context) => {
    class HangingSource extends FakeSource {
      override isDeleted(_: unknown, signal: AbortSignal): Promise<boolean> {
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(false)));
      }
    }
    const source = new HangingSource({ services: [serviceObject('web')], suspensions: [suspensionObject('x')] });
    const { store, controller, advance } = await startControllerHarness(context, { source });
    source.set({ suspensions: [] });
    await advance(10);
    source.set({ services: [serviceObject('api')] });
    await advance(10);
    assert.deepEqual(await servedServices(store), ['api']);
    assert.equal((await store.suspensions.read()).suspensions.length, 1, 'not known to be deleted');
    await controller.close();
  });

  test('are retried until they succeed, with one warning', async (context) => {
    const reasons: string[] = [];
    const log = createLogger({
      name: 'test',
      level: 'warn',
      destination: { write: (line) => void reasons.push(JSON.parse(line).reason) },
    });
    const clock = new ManualClock();
    let calls = 0;
    let isUnreachable = true;
    const remove = async (): Promise<void> => {
      calls += 1;
      if (isUnreachable) throw new Error('unreachable');
    };
    const { source, advance } = await startControllerHarness(context, {
      clock,
      log,
      suspensions: { getOrCreate: () => assert.fail(), remove },
    });
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await advance(60_000);
    assert.ok(calls > 2);
    assert.deepEqual(reasons, ['unreachable']);
    isUnreachable = false;
    await advance(60_000);
    isUnreachable = true;
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await advance(60_000);
    assert.deepEqual(reasons, ['unreachable', 'unreachable'], 'a new series of failures is logged again');
  });
});
