import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@weir/runtime';
import fc from 'fast-check';
import {
  DescriptorLimiter,
  descriptorsForConnections,
  parseDescriptorLimit,
} from '../../src/limits/descriptor-limit.ts';
import { createDescriptorMonitor } from '../../src/status/host-warnings.ts';

test('parseDescriptorLimit reads the soft limit from /proc/self/limits', () => {
  const text =
    'Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n';
  assert.equal(parseDescriptorLimit(text), 1_024);
  assert.equal(parseDescriptorLimit('nothing'), undefined);
});

describe('DescriptorLimiter', () => {
  test('never lets connections use more than their descriptors, however the workers alternate', () => {
    fc.assert(
      fc.property(fc.integer({ min: 64, max: 2_000 }), fc.array(fc.nat(3), { maxLength: 2_000 }), (limit, turns) => {
        let open = 40;
        const limiters = Array.from(
          { length: 4 },
          () => new DescriptorLimiter({ limit, workers: 4, countOpen: () => open, now: () => 0 }),
        );
        for (const worker of turns) if (limiters[worker]?.admits() === true) open += 2;
        // Each of the 4 workers may have admitted one more connection, of 2 descriptors, since it last counted
        // descriptors.
        assert.ok(open <= Math.max(40, descriptorsForConnections(limit) + 2 * 4), `${open} of ${limit}`);
      }),
    );
  });

  test('counts the open descriptors once while none is free, and admits again soon after some are', () => {
    let open = 1_000;
    let counts = 0;
    let now = 0;
    const limiter = new DescriptorLimiter({
      limit: 1_000,
      workers: 1,
      now: () => now,
      countOpen: () => {
        counts += 1;
        return open;
      },
    });
    for (let attempt = 0; attempt < 10_000; attempt += 1) assert.equal(limiter.admits(), false);
    assert.equal(counts, 1);
    open = 10;
    now = 10;
    assert.equal(limiter.admits(), true);
  });
});

test('createDescriptorMonitor warns once when descriptors become few, and again only after they were not', () => {
  const lines: string[] = [];
  const log = createLogger({ name: 'test', level: 'warn', destination: { write: (line: string) => lines.push(line) } });
  let open = 0;
  const check = createDescriptorMonitor({ log, limit: 1_000, open: () => open });
  for (const [now, warnings] of [
    [500, 0],
    [600, 1],
    [700, 1],
    [550, 1],
    [100, 1],
    [650, 2],
  ] as const) {
    open = now;
    check();
    assert.equal(lines.length, warnings, `at ${now}`);
  }
});
