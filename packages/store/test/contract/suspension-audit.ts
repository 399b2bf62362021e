import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SuspensionAuditRecord, SuspensionStore } from '../../src/contract.ts';
import { AUDIT_PAGE_SIZE } from '../../src/limits.ts';
import { suspension } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

export function suspensionAuditContract(subject: StoreUnderTest): void {
  describe(`the audit trail of suspensions of ${subject.name}`, () => {
    test('has each change and each release once, newest first', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const first = suspension('a', { madeBy: 'alice' });
      const changed = suspension('a', { madeBy: 'bob', message: 'enough' });
      await suspensions.put(first);
      await suspensions.put(first);
      await suspensions.put(changed);
      await suspensions.put(suspension('b', { until: 5 }));
      await suspensions.remove('a', { suspension: changed, why: 'resumed', by: 'carol' });
      await suspensions.remove('b', { suspension: suspension('b', { until: 5 }), why: 'expired' });
      await suspensions.remove('b', { suspension: suspension('b', { until: 5 }), why: 'expired' });
      await suspensions.remove('unknown');
      const records = await suspensions.audit();
      assert.deepEqual(records.map(shown), [
        ['b', 'nobody', { why: 'expired' }],
        ['a', 'bob', { why: 'resumed', by: 'carol' }],
        ['b', 'nobody', null],
        ['a', 'bob', null],
        ['a', 'alice', null],
      ]);
      assert.deepEqual(records.at(-1)?.suspension, first);
      for (const { at } of records) assert.ok(Math.abs(at - Date.now()) < 60_000);
    });

    test('has a release by a user even if the suspension is gone, but no adoption of a request', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      await suspensions.markComplete();
      await suspensions.put(suspension('request'));
      await suspensions.put(suspension('object'), 'request');
      await suspensions.remove('request');
      await suspensions.remove('object', { suspension: suspension('object'), why: 'deleted' });
      await suspensions.remove('object', { suspension: suspension('object'), why: 'resumed', by: 'bob' });
      await suspensions.put(suspension('later'), 'request');
      assert.deepEqual(
        (await suspensions.audit()).map(({ suspension: { uid }, release }) => [uid, release?.why]),
        [
          ['later', undefined],
          ['object', 'resumed'],
          ['object', 'deleted'],
          ['request', undefined],
        ],
      );
    });

    test('is read in pages, each record once', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const count = AUDIT_PAGE_SIZE + 20;
      for (let i = 0; i < count; i += 1) await suspensions.put(suspension('a', { message: String(i) }));
      const pages = [await suspensions.audit(), await secondPage(suspensions)];
      assert.deepEqual(
        pages.map(({ length }) => length),
        [AUDIT_PAGE_SIZE, 20],
      );
      assert.deepEqual(
        pages.flat().map(({ suspension: { message } }) => message),
        Array.from({ length: count }, (_, i) => String(count - 1 - i)),
      );
    });
  });
}

async function secondPage(suspensions: SuspensionStore): Promise<readonly SuspensionAuditRecord[]> {
  return suspensions.audit((await suspensions.audit()).at(-1)?.id);
}

function shown({ suspension: { uid, madeBy = 'nobody' }, release }: SuspensionAuditRecord): unknown {
  return [uid, madeBy, release];
}
