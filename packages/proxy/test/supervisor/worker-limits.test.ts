// What is decided about workers and descriptors, without any.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger, ManualClock } from '@weir/runtime';
import fc from 'fast-check';
import {
  DescriptorLimiter,
  descriptorsForConnections,
  parseDescriptorLimit,
} from '../../src/limits/descriptor-limit.ts';
import { createDescriptorMonitor } from '../../src/status/host-warnings.ts';
import { LocalFailureLog } from '../../src/supervisor/worker-log.ts';
import { WorkerSlots } from '../../src/supervisor/worker-slots.ts';
import { heapLimitMb } from '../../src/supervisor/worker-thread.ts';

const GIB = 2 ** 30;

describe('the heap of workers', () => {
  test('never takes more than half of the memory, but for what a worker cannot do without', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 256 }), fc.integer({ min: 1, max: 4_096 }), (workers, gib) => {
        const each = heapLimitMb(gib * GIB, workers);
        assert.ok(each >= 128 && each <= 4_096);
        assert.ok(each === 128 || each * workers <= (gib * 1_024) / 2);
      }),
    );
  });
});

describe('descriptors', () => {
  test('the limit is read from what the kernel prints', () => {
    const text =
      'Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n';
    assert.equal(parseDescriptorLimit(text), 1_024);
    assert.equal(parseDescriptorLimit('nothing'), undefined);
  });

  test('however workers take turns, connections never use more than is for them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 64, max: 2_000 }), fc.array(fc.nat(3), { maxLength: 2_000 }), (limit, turns) => {
        let open = 40;
        const rooms = Array.from(
          { length: 4 },
          () => new DescriptorLimiter({ limit, workers: 4, countOpen: () => open, now: () => 0 }),
        );
        for (const turn of turns) if (rooms[turn]?.admits() === true) open += 2;
        // Each worker may have been promised one more while it looked.
        assert.ok(open <= Math.max(40, descriptorsForConnections(limit) + 2 * 4), `${open} of ${limit}`);
      }),
    );
  });

  test('while there is no room nobody looks each time, and soon after there is they are let in again', () => {
    let open = 1_000;
    let looks = 0;
    let now = 0;
    const room = new DescriptorLimiter({
      limit: 1_000,
      workers: 1,
      now: () => now,
      countOpen: () => {
        looks += 1;
        return open;
      },
    });
    for (let count = 0; count < 10_000; count += 1) assert.equal(room.admits(), false);
    assert.equal(looks, 1);
    open = 10;
    now = 10;
    assert.equal(room.admits(), true);
  });

  test('are told once when they become few, and again only after they were not', () => {
    const lines: string[] = [];
    const log = createLogger({
      name: 'test',
      level: 'warn',
      destination: { write: (line: string) => lines.push(line) },
    });
    let open = 0;
    const watch = createDescriptorMonitor({ log, limit: 1_000, open: () => open });
    for (const [now, told] of [
      [500, 0],
      [600, 1],
      [700, 1],
      [550, 1],
      [100, 1],
      [650, 2],
    ] as const) {
      open = now;
      watch();
      assert.equal(lines.length, told, `at ${now}`);
    }
  });
});

test('what this host could not connect is counted always and told now and then', async () => {
  const lines: string[] = [];
  const log = createLogger({ name: 'test', level: 'warn', destination: { write: (line: string) => lines.push(line) } });
  const clock = new ManualClock();
  const failures = new LocalFailureLog({ log, clock });
  failures.add({ EADDRNOTAVAIL: 3 });
  failures.add({ EADDRNOTAVAIL: 4, EMFILE: 1 });
  assert.equal(lines.length, 2);
  clock.jumpWallClock(3_600_000);
  failures.add({ EADDRNOTAVAIL: 1 });
  assert.equal(lines.length, 2);
  await clock.advance(10_000);
  failures.add({ EADDRNOTAVAIL: 1 });
  assert.equal(lines.length, 3);
  assert.deepEqual(failures.totals, { EADDRNOTAVAIL: 9, EMFILE: 1 });
});

test('counters of a seat never go back, whoever sits there', () => {
  const vitals = { heapBytes: 1, utilization: 0, delaySeconds: [] };
  const worker = (id: number, connections: number, cpuSeconds: number) => ({
    id,
    counts: { connections, active: 1 },
    stats: { ...vitals, cpuSeconds },
  });
  const seats = new WorkerSlots(2);
  seats.occupy(worker(1, 10, 1.5));
  seats.occupy(worker(2, 20, 2));
  seats.vacate(1);
  assert.deepEqual(
    seats
      .view()
      .map(({ worker: seat, connections, active, cpuSeconds, ends }) => [seat, connections, active, cpuSeconds, ends]),
    [
      [0, 10, 0, 1.5, 1],
      [1, 20, 1, 2, 0],
    ],
  );
  seats.occupy(worker(3, 5, 0.5));
  assert.equal(seats.workerIdAt(0), 3);
  assert.equal(seats.view()[0]?.connections, 15);
  assert.equal(seats.view()[0]?.cpuSeconds, 2);
});
