import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Suspension } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource } from '../fixtures/fake-source.ts';

const SUSPENSION: Omit<Suspension, 'uid'> = {
  name: 'tenant.shop',
  target: { kind: 'tenant', tenant: 'shop' },
  message: 'Stop.',
  until: null,
  reason: 'SuspendedByRule',
  origin: { kind: 'store' },
  createdAt: 1_700_000_000_000,
};

test('a leader forgets the recorded removals of suspensions when there are more than 1,000', async (context) => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const source = new FakeSource({}, 'kubernetes');
  const { advance } = await startControllerHarness(context, { clock, store, source });
  await advance(2_000);
  const lift = async (count: number, prefix: string): Promise<void> => {
    for (let index = 0; index < count; index += 1) {
      await store.suspensions.put({ ...SUSPENSION, uid: `${prefix}-${index}` });
      await store.suspensions.remove(`${prefix}-${index}`);
    }
  };
  await lift(1_000, 'kept');
  source.set({});
  await advance(2_000);
  const before = await store.suspensions.read();
  assert.equal(before.changes.size, 1_000);

  await lift(1, 'one-more');
  source.set({});
  await advance(2_000);
  const after = await store.suspensions.read();
  assert.equal(after.changes.size, 0);
  assert.ok((after.completeSince ?? 0) > (before.completeSince ?? 0));
});
