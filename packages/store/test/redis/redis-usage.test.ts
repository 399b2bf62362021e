import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { UsageReport } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { keysFor } from '../../src/redis/keys.ts';
import { RedisUsage, type UsageConnection } from '../../src/redis/redis-usage.ts';
import { report } from '../contract/sample-data.ts';

const MINUTE = 29_000_000;

describe('a report after a long outage', () => {
  test('is sent in parts of limited size, one after another', async () => {
    const calls = recorded(() => 'accepted');
    assert.deepEqual(await usageOver(calls).flush(outage(1_700, 3)), { kind: 'accepted' });
    assert.equal(calls.maxConcurrent, 1);
    const perCall = calls.sent.map((points) => points.length);
    assert.equal(
      perCall.reduce((a, b) => a + b),
      3 * 1_700,
    );
    assert.ok(Math.max(...perCall) <= 500, `${perCall}`);
    for (const service of ['u0', 'u1', 'u2']) {
      const received = calls.sent.flat().filter((point) => point.service === service);
      assert.deepEqual(
        received.map((point) => point.receivedBytes),
        Array.from({ length: 1_700 }, (_, index) => index + 1),
      );
    }
  });

  test('ends at the first refused part and returns the refusal', async () => {
    for (const refusal of ['seeding', 'folded'] as const) {
      const calls = recorded((call) => (call === 1 ? refusal : 'accepted'));
      assert.deepEqual(await usageOver(calls).flush(outage(1_700, 1)), { kind: refusal });
      assert.equal(calls.sent.length, 2);
    }
  });

  test('is sent even if the report is empty', async () => {
    const calls = recorded(() => 'folded');
    assert.deepEqual(await usageOver(calls).flush({ node: 'n', life: 1, slots: [] }), { kind: 'folded' });
  });
});

function outage(minutes: number, services: number): UsageReport {
  const points = Array.from({ length: minutes }, (_, index) => [MINUTE + index, index + 1] as const);
  const slots = Array.from({ length: services }, (_, index) => report(points, { service: `u${index}` }).slots).flat();
  return { ...report([]), slots };
}

interface Calls {
  readonly connection: UsageConnection;
  /** The points that each script call sends. */
  readonly sent: { readonly service: string; readonly receivedBytes: number }[][];
  readonly maxConcurrent: number;
}

function recorded(answer: (call: number) => string): Calls {
  const sent: Calls['sent'] = [];
  let open = 0;
  let maxConcurrent = 0;
  const run: UsageConnection['run'] = async (_script, keys, args) => {
    open += 1;
    maxConcurrent = Math.max(maxConcurrent, open);
    const call = sent.push(pointsOf(keys, args)) - 1;
    await new Promise(setImmediate);
    open -= 1;
    return answer(call);
  };
  const call: UsageConnection['call'] = () => assert.fail('a flush only runs its script');
  return {
    connection: { run, call },
    sent,
    get maxConcurrent() {
      return maxConcurrent;
    },
  };
}

function usageOver({ connection }: Calls): RedisUsage {
  return new RedisUsage(connection, keysFor('f'), new ManualClock());
}

/** Reads the arguments as the header of `flush-usage.lua` describes them. */
function pointsOf(keys: readonly string[], args: readonly (string | number)[]): Calls['sent'][number] {
  const rest = args.slice(3);
  const take = (count: number): (string | number)[] => rest.splice(0, count);
  take(Number(take(1)[0]));
  take(keys.length - 9);
  const points: Calls['sent'][number] = [];
  while (rest.length > 0) {
    const [service, , , count] = take(4);
    for (let point = 0; point < Number(count); point += 1) {
      points.push({ service: String(service), receivedBytes: Number(take(17)[8]) });
      take(2 * Number(take(1)[0]));
    }
  }
  return points;
}
