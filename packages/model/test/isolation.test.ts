// What one tenant writes must not reach another: beside the laws, what went wrong once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heldFor, NOTHING_HELD, translate } from '@weir/model';
import { policy, port, service, snapshotOf } from './build/snapshot.ts';

test('two Services whose tenants are in dispute learn nothing of each other', () => {
  const [one, two] = [service('a/one'), service('b/two', { ports: [port(81)] })];
  const before = translate(snapshotOf({ services: [one, two] }), NOTHING_HELD);
  const byLabel = policy('by-label', { tenantFrom: { kind: 'label', label: 'tenant' } });
  const greedy = service('a/one', { ports: [port(80), port(81, { name: 'more' })] });
  const disputed = snapshotOf({ services: [greedy, two], policies: [byLabel] });
  const { statuses } = translate(disputed, heldFor(before.table));
  const [error] = statuses.flatMap(({ ports }) => ports.flatMap((each) => each.error ?? []));
  assert.equal(error?.reason, 'PortConflict');
  assert.match(error.message, /taken by another tenant/);
});

test('a source range without end is refused at once, and does not travel in the table of the fleet', () => {
  const started = process.hrtime.bigint();
  const endless = service('a/web', { sourceRanges: [':'.repeat(40_000)] });
  const accepted = translate(snapshotOf({ services: [endless] }), NOTHING_HELD).statuses[0]?.accepted;
  assert.ok(process.hrtime.bigint() - started < 2_000_000_000n, 'in quadratic time it would be many seconds');
  assert.equal(accepted?.reason, 'InvalidAnnotation');
  assert.ok(accepted.message.length < 300);
});
