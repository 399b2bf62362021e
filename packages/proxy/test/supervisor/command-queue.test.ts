import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { atomicGroupsFor, type Change, serviceId } from '@weir/model';
import fc from 'fast-check';
import { CommandQueue, mergeCommands } from '../../src/supervisor/table-delivery.ts';
import type { WorkerCommand } from '../../src/worker/messages.ts';

const slab = new SharedArrayBuffer(8);
const id = fc.constantFrom('a', 'b', 'c');
const change = fc.oneof(
  fc.record({ kind: fc.constant('delete' as const), id }),
  fc.record({ kind: fc.constant('put' as const), id, value: fc.nat(3) }),
);
const order: fc.Arbitrary<WorkerCommand> = fc.oneof(
  fc
    .record({ changes: fc.array(change, { maxLength: 3 }), slots: fc.array(fc.tuple(id, fc.nat(3)), { maxLength: 2 }) })
    .map(tableOf),
  fc.nat(9).map((sequence): WorkerCommand => ({ kind: 'mark', sequence })),
  fc.nat(9).map((now): WorkerCommand => ({ kind: 'suspensions', suspensions: [], now })),
  fc.constant<WorkerCommand>({ kind: 'add-counter-block', block: slab }),
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

describe('orders that wait', () => {
  test('leave a worker, merged, where they would have left it one by one', () => {
    fc.assert(
      fc.property(fc.array(order, { maxLength: 20 }), fc.array(fc.nat(5), { maxLength: 6 }), (plain, doors) => {
        const orders = [...plain, ...doorOrders(doors)];
        assert.deepEqual(followed(mergeCommands(orders)), followed(orders));
      }),
    );
  });

  test('a maglev table meets just the endpoints that it was computed for', () => {
    const put = (value: number): WorkerCommand => tableOf({ changes: [{ kind: 'put', id: 'a', value }], slots: [] });
    const maglev: WorkerCommand = { kind: 'maglev', listeners: ['TCP/x/1'], slots: undefined };
    assert.deepEqual(
      mergeCommands([put(1), put(2), maglev, put(3), put(4)]).map(({ kind }) => kind),
      ['table', 'maglev', 'table'],
    );
  });

  test('Services that must be changed together still are, however many share what goes from hand to hand', () => {
    const give = ['a', 'b', 'c'].map((uid): Change => ({ kind: 'delete', id: serviceId(uid) }));
    const movedResources = ['a', 'b', 'c'].map((uid) => ['name/443/x.example', uid] as const);
    const [merged, ...others] = mergeCommands([
      { kind: 'table', changes: give.slice(0, 2), slots: [], movedResources: movedResources.slice(0, 2) },
      { kind: 'table', changes: give.slice(2), slots: [], movedResources: movedResources.slice(1) },
    ]);
    assert.ok(merged?.kind === 'table' && others.length === 0);
    assert.deepEqual(
      atomicGroupsFor(merged.changes, merged.movedResources ?? []).map(({ services }) => services),
      [['a', 'b', 'c']],
    );
  });

  test('a slab is there before anything is counted in it', () => {
    const orders = [
      tableOf({ changes: [], slots: [['a', 1]] }),
      { kind: 'add-counter-block', block: slab },
      tableOf({ changes: [], slots: [['b', 1_024]] }),
    ];
    assert.deepEqual(
      mergeCommands(orders as WorkerCommand[]).map(({ kind }) => kind),
      ['table', 'add-counter-block', 'table'],
    );
  });

  test('stay few however long the worker lags, and all arrive', () => {
    const sent: WorkerCommand[] = [];
    const queue = new CommandQueue((each) => sent.push(each));
    const all: WorkerCommand[] = [];
    for (let round = 1; round <= 50_000; round += 1) {
      const door = { id: round, key: 'TCP/x/1', protocol: 'TCP', address: 'x', port: 1 } as const;
      const orders: WorkerCommand[] = [
        tableOf({ changes: [{ kind: 'put', id: `${round % 100}`, value: round }], slots: [] }),
        { kind: 'open-listener', listener: door },
        { kind: 'close-listener', listener: door },
        { kind: 'mark', sequence: round },
      ];
      for (const each of orders) queue.post(each);
      all.push(...orders);
    }
    assert.ok(queue.length <= 256, `${queue.length} wait`);
    assert.ok(sent.length < 50);
    while (sent.at(-1)?.kind === 'mark' && queue.length > 0) queue.onMarkReached();
    assert.deepEqual(followed(sent), followed(all));
  });
});

/** What a worker makes of them: the state it ends in. */
function followed(orders: readonly WorkerCommand[]): unknown {
  const entries = new Map<string, Change>();
  const slots = new Map<string, number>();
  const doors = new Set<number>();
  const unused = new Map<string, readonly string[]>();
  let cutoffs: number | undefined;
  let mark: number | undefined;
  for (const each of orders) {
    if (each.kind === 'table') {
      for (const [uid, slot] of each.slots) slots.set(uid, slot);
      for (const one of each.changes) entries.set(one.kind === 'put' ? one.entry.id : one.id, one);
    } else if (each.kind === 'suspensions') cutoffs = each.now;
    else if (each.kind === 'health') for (const key of each.listeners) unused.set(key, each.excluded);
    else if (each.kind === 'mark') mark = each.sequence;
    else if (each.kind === 'open-listener') doors.add(each.listener.id);
    else if (each.kind === 'close-listener') doors.delete(each.listener.id);
  }
  return { entries, slots, doors, unused, cutoffs, mark };
}

function doorOrders(ids: readonly number[]): WorkerCommand[] {
  return ids.flatMap((each, index): WorkerCommand[] => {
    const door = { id: index, key: 'TCP/x/1', protocol: 'TCP', address: 'x', port: 1 } as const;
    return each > 2
      ? [
          { kind: 'open-listener', listener: door },
          { kind: 'close-listener', listener: door },
        ]
      : [{ kind: 'open-listener', listener: door }];
  });
}

interface Plain {
  readonly changes: readonly ({ kind: 'delete'; id: string } | { kind: 'put'; id: string; value: number })[];
  readonly slots: readonly (readonly [string, number])[];
}

/** Only ids matter to merging. */
function tableOf({ changes, slots }: Plain): WorkerCommand {
  return {
    kind: 'table',
    slots,
    changes: changes.map((each) =>
      each.kind === 'delete' ? each : ({ kind: 'put', entry: { id: each.id, value: each.value } } as unknown as Change),
    ),
  };
}
