import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { atomicGroupsFor, type Change, type RoutingTable, serviceId } from '@weir/model';
import fc from 'fast-check';
import type { LimiterRows } from '../../src/limits/admission.ts';
import { CommandQueue, mergeCommands, packTable } from '../../src/supervisor/table-delivery.ts';
import type { PackedTableCommand, SentCommand, TableCommand, WorkerCommand } from '../../src/worker/messages.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';

const block = new SharedArrayBuffer(8);
const id = fc.constantFrom('a', 'b', 'c');
const change = fc.oneof(
  fc.record({ kind: fc.constant('delete' as const), id }),
  fc.record({ kind: fc.constant('put' as const), id, value: fc.nat(3) }),
);
const arbitraryCommand: fc.Arbitrary<WorkerCommand> = fc.oneof(
  fc
    .record({ changes: fc.array(change, { maxLength: 3 }), slots: fc.array(fc.tuple(id, fc.nat(3)), { maxLength: 2 }) })
    .map(tableOf),
  fc.nat(9).map((sequence): WorkerCommand => ({ kind: 'mark', sequence })),
  fc.nat(9).map((now): WorkerCommand => ({ kind: 'suspensions', suspensions: [], now })),
  fc.constant<WorkerCommand>({ kind: 'add-counter-block', block }),
  fc.constant<WorkerCommand>({ kind: 'maglev', listeners: ['TCP/x/1'], slots: undefined }),
  fc
    .record({
      listeners: fc.subarray(['TCP/x/1', 'TCP/x/2'], { minLength: 1 }),
      excluded: fc.subarray(['a', 'b']),
      failing: fc.subarray(['a', 'b']),
      draining: fc.subarray(['a']),
    })
    .map((health): WorkerCommand => ({ kind: 'health', ...health })),
);

describe('mergeCommands', () => {
  test('leaves a worker in the same state as the commands one by one', () => {
    fc.assert(
      fc.property(
        fc.array(arbitraryCommand, { maxLength: 20 }),
        fc.array(fc.nat(5), { maxLength: 6 }),
        (others, ids) => {
          const commands = [...others, ...listenerCommands(ids)];
          assert.deepEqual(stateAfter(mergeCommands(commands)), stateAfter(commands));
        },
      ),
    );
  });

  test('keeps a Maglev table behind the endpoints that it was computed for', () => {
    const put = (value: number): WorkerCommand => tableOf({ changes: [{ kind: 'put', id: 'a', value }], slots: [] });
    const maglev: WorkerCommand = { kind: 'maglev', listeners: ['TCP/x/1'], slots: undefined };
    assert.deepEqual(
      mergeCommands([put(1), put(2), maglev, put(3), put(4)]).map(({ kind }) => kind),
      ['table', 'maglev', 'table'],
    );
  });

  test('keeps Services in one atomic group that pass a host on in separate commands', () => {
    const deletions = ['a', 'b', 'c'].map((uid): Change => ({ kind: 'delete', id: serviceId(uid) }));
    const movedResources = ['a', 'b', 'c'].map((uid) => ['name/443/x.example', uid] as const);
    const [merged, ...others] = mergeCommands([
      { kind: 'table', changes: deletions.slice(0, 2), slots: [], movedResources: movedResources.slice(0, 2) },
      { kind: 'table', changes: deletions.slice(2), slots: [], movedResources: movedResources.slice(1) },
    ]);
    assert.ok(merged?.kind === 'table' && others.length === 0);
    assert.deepEqual(
      atomicGroupsFor(merged.changes, merged.movedResources ?? []).map(({ services }) => services),
      [['a', 'b', 'c']],
    );
  });

  test('adds a counter block before the Services that are counted in it', () => {
    const commands = [
      tableOf({ changes: [], slots: [['a', 1]] }),
      { kind: 'add-counter-block', block },
      tableOf({ changes: [], slots: [['b', 1_024]] }),
    ];
    assert.deepEqual(
      mergeCommands(commands as WorkerCommand[]).map(({ kind }) => kind),
      ['table', 'add-counter-block', 'table'],
    );
  });
});

describe('CommandQueue', () => {
  test('keeps few commands while a worker lags, and leads to the same state', () => {
    const sent: WorkerCommand[] = [];
    const queue = new CommandQueue((command) => sent.push(command));
    const all: WorkerCommand[] = [];
    for (let round = 1; round <= 50_000; round += 1) {
      const listener = { id: round, key: 'TCP/x/1', protocol: 'TCP', address: 'x', port: 1 } as const;
      const commands: WorkerCommand[] = [
        tableOf({ changes: [{ kind: 'put', id: `${round % 100}`, value: round }], slots: [] }),
        { kind: 'open-listener', listener },
        { kind: 'close-listener', listener },
        { kind: 'mark', sequence: round },
      ];
      for (const command of commands) queue.post(command);
      all.push(...commands);
    }
    assert.ok(queue.length <= 256, `${queue.length} commands wait`);
    assert.ok(sent.length < 50);
    while (sent.at(-1)?.kind === 'mark' && queue.length > 0) queue.onMarkReached();
    assert.deepEqual(stateAfter(sent), stateAfter(all));
  });

  test('sends suspensions before the commands that wait', () => {
    const sent: SentCommand[] = [];
    const queue = new CommandQueue((command) => sent.push(command));
    for (let sequence = 1; sequence <= 8; sequence += 1) queue.post({ kind: 'mark', sequence });
    queue.post({ kind: 'table', changes: [], slots: [] });
    queue.post({ kind: 'suspensions', suspensions: [], now: 5 });
    assert.deepEqual([sent.at(-1)?.kind, queue.length], ['suspensions', 1]);
  });
});

const services = Array.from(
  { length: 60 },
  (_, index): TestService => ({
    name: `s${100 + index}`,
    port: 1_000 + index,
    endpoints: [{ address: '10.0.0.1', port: 80 }],
  }),
);

describe('packTable', () => {
  test('packs every change, with all changes, the slot and the limiter rows of a Service in one batch', () => {
    const command = commandFor(tableFor({ a: '192.0.2.1' }, services));
    const batches = batchesOf(packTable(command));
    assert.ok(batches.length > 5);
    const byId = (one: Change, other: Change): number => (idOf(one) < idOf(other) ? -1 : 1);
    assert.deepEqual(batches.flatMap(({ changes }) => changes).sort(byId), [...command.changes].sort(byId));
    for (const service of services) {
      const uid = uidOf(service);
      const found = batches.filter((batch) => batch.changes.some((change) => isOf(change, uid)));
      const [batch] = found;
      assert.equal(found.length, 1);
      assert.equal(batch?.changes.filter((change) => isOf(change, uid)).length, 3);
      assert.ok(batch?.slots.some(([each]) => each === uid));
      assert.ok(batch?.limits?.some(([each]) => each === uid));
    }
    assert.equal(batches.flatMap(({ slots }) => slots).length, command.slots.length);
  });

  test('packs the slots and limiter rows of Services without changes first', () => {
    const { changes } = commandFor(tableFor({ a: '192.0.2.1' }, services));
    const [first] = batchesOf(packTable({ kind: 'table', changes, slots: [['other', 9]], limits: [['other', 1, 2]] }));
    assert.deepEqual([first?.slots, first?.limits], [[['other', 9]], [['other', 1, 2]]]);
  });

  test('packs a table once for all workers', () => {
    const command = commandFor(tableFor({ a: '192.0.2.1' }, services));
    assert.equal(packTable(command), packTable(command));
  });

  test('keeps Services in one batch that pass a listener on while their commands wait', () => {
    const complete = commandFor(tableFor({ a: '192.0.2.1' }, services));
    const moved = (from: string, to: string): TableCommand => {
      const change = complete.changes.find(
        ({ kind, ...each }) => kind === 'put' && 'entry' in each && isFirst(each.entry.id),
      );
      assert.ok(change?.kind === 'put' && change.entry.kind === 'listener');
      const entry = { ...change.entry, service: to };
      return { kind: 'table', changes: [{ kind: 'put', entry }], slots: [], movedResources: [[entry.id, from]] };
    };
    const rest = { ...complete, changes: complete.changes.filter((change) => !isFirst(idOf(change))) };
    const [s0 = '', s1 = '', s50 = ''] = [0, 1, 50].map((index) => uidOf(services[index] as TestService));
    const [merged] = mergeCommands([moved(s0, s1), moved(s1, s50), rest]);
    assert.ok(merged?.kind === 'table');
    const batch = batchesOf(packTable(merged)).find(({ changes }) => changes.some((each) => isFirst(idOf(each))));
    for (const uid of [s0, s50])
      assert.ok(
        batch?.changes.some((change) => idOf(change) === `service/${uid}`),
        uid,
      );
  });

  test('puts few Services in one batch if their certificate chains or CAs are long', () => {
    const pem = 'x'.repeat(60_000);
    const secured = services.slice(0, 4).map((service) => ({
      ...service,
      certificate: { chain: pem, keyDigest: 'digest', sealedKey: 'sealed', notAfter: 0, clientAuthorities: pem },
    }));
    const batches = batchesOf(packTable(commandFor(tableFor({ a: '192.0.2.1' }, secured))));
    const certificates = batches.map(
      ({ changes }) => changes.filter((each) => each.kind === 'put' && each.entry.kind === 'certificate').length,
    );
    assert.deepEqual(
      certificates.filter((count) => count > 0),
      [1, 1, 1, 1],
    );
  });

  test('puts few Services in one batch if their source ranges are long', () => {
    const sourceRanges = Array.from({ length: 10_000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
    const ranged = services.slice(0, 4).map((service) => ({ ...service, settings: { sourceRanges } }));
    const batches = batchesOf(packTable(commandFor(tableFor({ a: '192.0.2.1' }, ranged))));
    const counts = batches.map(({ changes }) => changes.filter((change) => idOf(change).startsWith('service/')).length);
    assert.deepEqual(
      counts.filter((count) => count > 0),
      [1, 1, 1, 1],
    );
  });

  test('returns a small table as it is', () => {
    const command = commandFor(tableFor({ a: '192.0.2.1' }, services.slice(0, 2)));
    assert.equal(packTable(command), command);
  });
});

/** Returns the state of a worker that has applied these commands in order. */
function stateAfter(commands: readonly WorkerCommand[]): unknown {
  const entries = new Map<string, Change>();
  const slots = new Map<string, number>();
  const listeners = new Set<number>();
  const excluded = new Map<string, readonly string[]>();
  let suspendedAt: number | undefined;
  let mark: number | undefined;
  for (const each of commands) {
    if (each.kind === 'table') {
      for (const [uid, slot] of each.slots) slots.set(uid, slot);
      for (const one of each.changes) entries.set(one.kind === 'put' ? one.entry.id : one.id, one);
    } else if (each.kind === 'suspensions') suspendedAt = each.now;
    else if (each.kind === 'health') for (const key of each.listeners) excluded.set(key, each.excluded);
    else if (each.kind === 'mark') mark = each.sequence;
    else if (each.kind === 'open-listener') listeners.add(each.listener.id);
    else if (each.kind === 'close-listener') listeners.delete(each.listener.id);
  }
  return { entries, slots, listeners, excluded, suspendedAt, mark };
}

function listenerCommands(ids: readonly number[]): WorkerCommand[] {
  return ids.flatMap((each, index): WorkerCommand[] => {
    const listener = { id: index, key: 'TCP/x/1', protocol: 'TCP', address: 'x', port: 1 } as const;
    return each > 2
      ? [
          { kind: 'open-listener', listener },
          { kind: 'close-listener', listener },
        ]
      : [{ kind: 'open-listener', listener }];
  });
}

interface TestTable {
  readonly changes: readonly ({ kind: 'delete'; id: string } | { kind: 'put'; id: string; value: number })[];
  readonly slots: readonly (readonly [string, number])[];
}

/** Returns a table command whose entries have only an id and a value, because merging uses only the ids of entries. */
function tableOf({ changes, slots }: TestTable): WorkerCommand {
  return {
    kind: 'table',
    slots,
    changes: changes.map((each) =>
      each.kind === 'delete' ? each : ({ kind: 'put', entry: { id: each.id, value: each.value } } as unknown as Change),
    ),
  };
}

const isFirst = (id: string): boolean => id === 'listener/a/192.0.2.1/TCP/1000';

function isOf(change: Change, uid: string): boolean {
  const entry = change.kind === 'put' ? change.entry : undefined;
  return entry?.kind === 'service'
    ? entry.uid === uid
    : entry !== undefined && 'service' in entry && entry.service === uid;
}

const idOf = (change: Change): string => (change.kind === 'put' ? change.entry.id : change.id);

function commandFor(table: RoutingTable): TableCommand {
  return {
    kind: 'table',
    changes: [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry })),
    slots: services.map((service, index) => [uidOf(service), index] as const),
    limits: services.map((service, index): LimiterRows => [uidOf(service), index, 0]),
  };
}

function batchesOf(sent: SentCommand): TableCommand[] {
  assert.equal(sent.kind, 'packed-table');
  const { bytes, ends } = sent as PackedTableCommand;
  return [...ends].map(
    (end, index) => JSON.parse(Buffer.from(bytes).toString('utf8', ends[index - 1] ?? 0, end)) as TableCommand,
  );
}
