import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Change, RoutingTable } from '@weir/model';
import type { LimiterRows } from '../../../src/limits/admission.ts';
import { CommandQueue, mergeCommands, packTable } from '../../../src/supervisor/table-delivery.ts';
import type { PackedTableCommand, SentCommand, TableCommand } from '../../../src/worker/messages.ts';
import { type TestService, tableFor, uidOf } from '../../fixtures/tables.ts';

const services = Array.from(
  { length: 60 },
  (_, index): TestService => ({
    name: `s${100 + index}`,
    port: 1_000 + index,
    endpoints: [{ address: '10.0.0.1', port: 80 }],
  }),
);

describe('a large table on its way to the workers', () => {
  test('is all there, each Service whole and with what counts and limits it', () => {
    const order = orderOf(tableFor({ a: '192.0.2.1' }, services));
    const pieces = piecesOf(packTable(order));
    assert.ok(pieces.length > 5);
    const byId = (one: Change, other: Change): number => (idOf(one) < idOf(other) ? -1 : 1);
    assert.deepEqual(pieces.flatMap(({ changes }) => changes).sort(byId), [...order.changes].sort(byId));
    for (const service of services) {
      const uid = uidOf(service);
      const found = pieces.filter((piece) => piece.changes.some((change) => isOf(change, uid)));
      const [piece] = found;
      assert.equal(found.length, 1);
      assert.equal(piece?.changes.filter((change) => isOf(change, uid)).length, 3);
      assert.ok(piece?.slots.some(([each]) => each === uid));
      assert.ok(piece?.limits?.some(([each]) => each === uid));
    }
    assert.equal(pieces.flatMap(({ slots }) => slots).length, order.slots.length);
  });

  test('keeps slots and limits of Services that do not change', () => {
    const { changes } = orderOf(tableFor({ a: '192.0.2.1' }, services));
    const [first] = piecesOf(packTable({ kind: 'table', changes, slots: [['other', 9]], limits: [['other', 1, 2]] }));
    assert.deepEqual([first?.slots, first?.limits], [[['other', 9]], [['other', 1, 2]]]);
  });

  test('is made once for all workers', () => {
    const order = orderOf(tableFor({ a: '192.0.2.1' }, services));
    assert.equal(packTable(order), packTable(order));
  });

  test('holds Services together between which a listener changes hands while the orders wait', () => {
    const whole = orderOf(tableFor({ a: '192.0.2.1' }, services));
    const moved = (from: string, to: string): TableCommand => {
      const change = whole.changes.find(
        ({ kind, ...each }) => kind === 'put' && 'entry' in each && isFirst(each.entry.id),
      );
      assert.ok(change?.kind === 'put' && change.entry.kind === 'listener');
      const entry = { ...change.entry, service: to };
      return { kind: 'table', changes: [{ kind: 'put', entry }], slots: [], movedResources: [[entry.id, from]] };
    };
    const rest = { ...whole, changes: whole.changes.filter((change) => !isFirst(idOf(change))) };
    const [s0 = '', s1 = '', s50 = ''] = [0, 1, 50].map((index) => uidOf(services[index] as TestService));
    const [merged] = mergeCommands([moved(s0, s1), moved(s1, s50), rest]);
    assert.ok(merged?.kind === 'table');
    const piece = piecesOf(packTable(merged)).find(({ changes }) => changes.some((each) => isFirst(idOf(each))));
    for (const uid of [s0, s50])
      assert.ok(
        piece?.changes.some((change) => idOf(change) === `service/${uid}`),
        uid,
      );
  });

  test('has few Services in one piece where they show long chains, or believe many CAs', () => {
    const pem = 'x'.repeat(60_000);
    const secured = services.slice(0, 4).map((service) => ({
      ...service,
      certificate: { chain: pem, keyDigest: 'digest', sealedKey: 'sealed', notAfter: 0, clientAuthorities: pem },
    }));
    const pieces = piecesOf(packTable(orderOf(tableFor({ a: '192.0.2.1' }, secured))));
    const certificates = pieces.map(
      ({ changes }) => changes.filter((each) => each.kind === 'put' && each.entry.kind === 'certificate').length,
    );
    assert.deepEqual(
      certificates.filter((count) => count > 0),
      [1, 1, 1, 1],
    );
  });

  test('has few Services in one piece where they have long lists of source ranges', () => {
    const sourceRanges = Array.from({ length: 10_000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
    const ranged = services.slice(0, 4).map((service) => ({ ...service, settings: { sourceRanges } }));
    const pieces = piecesOf(packTable(orderOf(tableFor({ a: '192.0.2.1' }, ranged))));
    const counts = pieces.map(({ changes }) => changes.filter((change) => idOf(change).startsWith('service/')).length);
    assert.deepEqual(
      counts.filter((count) => count > 0),
      [1, 1, 1, 1],
    );
  });

  test('a small one goes as it is', () => {
    const order = orderOf(tableFor({ a: '192.0.2.1' }, services.slice(0, 2)));
    assert.equal(packTable(order), order);
  });
});

test('cut-offs do not wait behind a table that a worker is still following', () => {
  const sent: SentCommand[] = [];
  const queue = new CommandQueue((order) => sent.push(order));
  for (let sequence = 1; sequence <= 8; sequence += 1) queue.post({ kind: 'mark', sequence });
  queue.post({ kind: 'table', changes: [], slots: [] });
  queue.post({ kind: 'suspensions', suspensions: [], now: 5 });
  assert.deepEqual([sent.at(-1)?.kind, queue.length], ['suspensions', 1]);
});

const isFirst = (id: string): boolean => id === 'listener/a/192.0.2.1/TCP/1000';

function isOf(change: Change, uid: string): boolean {
  const entry = change.kind === 'put' ? change.entry : undefined;
  return entry?.kind === 'service'
    ? entry.uid === uid
    : entry !== undefined && 'service' in entry && entry.service === uid;
}

const idOf = (change: Change): string => (change.kind === 'put' ? change.entry.id : change.id);

function orderOf(table: RoutingTable): TableCommand {
  return {
    kind: 'table',
    changes: [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry })),
    slots: services.map((service, index) => [uidOf(service), index] as const),
    limits: services.map((service, index): LimiterRows => [uidOf(service), index, 0]),
  };
}

function piecesOf(sent: SentCommand): TableCommand[] {
  assert.equal(sent.kind, 'packed-table');
  const { bytes, ends } = sent as PackedTableCommand;
  return [...ends].map(
    (end, index) => JSON.parse(Buffer.from(bytes).toString('utf8', ends[index - 1] ?? 0, end)) as TableCommand,
  );
}
