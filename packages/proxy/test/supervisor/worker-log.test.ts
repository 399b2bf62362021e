import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, ManualClock } from '@weir/runtime';
import { LocalFailureLog } from '../../src/supervisor/worker-log.ts';

test('LocalFailureLog counts every failure, and logs an errno at most every ten seconds', async () => {
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
