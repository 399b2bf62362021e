import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cpuTimeOf, parseProcessStat } from '../src/measure/cpu-time.ts';

const STAT_FIELDS =
  'S 4021 4048 4021 34816 4048 4194304 905 12 1 0 123 45 6 7 20 0 11 0 220178 1093 455 18446744073709551615';

describe('CPU time', () => {
  test('utime and stime are fields 14 and 15, in hundredths of a second', () => {
    assert.deepEqual(parseProcessStat(`4048 (haproxy) ${STAT_FIELDS}`), { userMs: 1230, systemMs: 450 });
  });

  test('a name with spaces and parentheses moves no field', () => {
    assert.deepEqual(parseProcessStat(`4048 (a (b) 1 2) c) ${STAT_FIELDS}`), { userMs: 1230, systemMs: 450 });
  });

  test('what is no such line is refused', () => {
    assert.throws(() => parseProcessStat('4048 (haproxy) S 1 2 3'), /not a line/);
  });

  test('our own process has used some', () => {
    const { userMs, systemMs } = cpuTimeOf(process.pid);
    assert.ok(userMs + systemMs > 0);
  });
});
