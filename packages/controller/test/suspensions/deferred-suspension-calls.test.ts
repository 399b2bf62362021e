import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger, ManualClock } from '@weir/runtime';
import { servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

describe('what the API server is asked about Suspensions', () => {
  test('keeps no table waiting while it does not answer', async (context) => {
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

  test('is asked again until it works, and told of once', async (context) => {
    const lines: string[] = [];
    const log = createLogger({
      name: 'test',
      level: 'warn',
      destination: { write: (line) => void lines.push(JSON.parse(line).reason) },
    });
    const clock = new ManualClock();
    let asked = 0;
    let isAway = true;
    const remove = async (): Promise<void> => {
      asked += 1;
      if (isAway) throw new Error('away');
    };
    const { source, advance } = await startControllerHarness(context, {
      clock,
      log,
      suspensions: { getOrCreate: () => assert.fail(), remove },
    });
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await advance(60_000);
    assert.ok(asked > 2);
    assert.deepEqual(lines, ['away']);
    isAway = false;
    await advance(60_000);
    isAway = true;
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await advance(60_000);
    assert.deepEqual(lines, ['away', 'away'], 'another streak');
  });
});
