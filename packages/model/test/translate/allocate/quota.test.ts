import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_ALLOCATIONS, type ServiceObject, translate } from '@weir/model';
import { namespace, policy, port, service, snapshotOf } from '../../fixtures/snapshot.ts';

const SERVED = 100;

/** Counts how often the names of served Services are read while `refused` further Services exceed the limit. */
function looksWith(refused: number): { readonly looks: number; readonly messages: readonly string[] } {
  let looks = 0;
  const watched = (index: number): ServiceObject => {
    const name = `a${String(index).padStart(4, '0')}`;
    const one = service(`shop/${name}`, { ports: [port(1_000 + index)] });
    return Object.defineProperty(one, 'name', {
      enumerable: true,
      get() {
        looks += 1;
        return name;
      },
    });
  };
  const services = [
    ...Array.from({ length: SERVED }, (_, index) => watched(index)),
    ...Array.from({ length: refused }, (_, index) => service(`shop/z${index}`, { ports: [port(5_000 + index)] })),
  ];
  const policies = [policy('shop', { limits: { services: SERVED } })];
  const { statuses } = translate(snapshotOf({ namespaces: [namespace('shop')], services, policies }), NO_ALLOCATIONS);
  const over = statuses.filter(({ accepted }) => accepted.reason === 'QuotaExceeded');
  return { looks, messages: over.map(({ accepted }) => accepted.message) };
}

test('lists the served Services once for all refused Services', () => {
  const few = looksWith(2);
  const many = looksWith(400);
  assert.deepEqual([few.messages.length, many.messages.length], [2, 400]);
  assert.match(
    few.messages[0] ?? '',
    /^100 of 100 load balancers of tenant "shop" are in use \(a0000, a0001, .* and 95/,
  );
  assert.equal(new Set(many.messages).size, 1);
  assert.match(
    many.messages[0] ?? '',
    /^all 100 load balancers that tenant "shop" may have are in use, and many more Services wait/,
  );
  // Allows for the names that sorting reads more than once.
  assert.ok(many.looks - few.looks < 2 * SERVED, `${few.looks} looks with 2, ${many.looks} with 400`);
});
