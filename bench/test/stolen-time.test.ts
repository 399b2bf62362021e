import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProcessorTime, processorTime, stolenShare } from '../src/measure/stolen-time.ts';

const STAT = 'cpu  100 10 50 800 5 0 15 20 7 3\ncpu0 50 5 25 400 2 0 7 10 3 1\nintr 1\n';

test('what the host took is a share of all the time of all processors', () => {
  const before = parseProcessorTime(STAT);
  assert.deepEqual(before, { all: 1_000, stolen: 20 });
  const after = parseProcessorTime('cpu  150 10 70 810 5 0 15 40 7 3\n');
  assert.equal(stolenShare(before, after), 0.2);
});

test('where nothing tells of it, it is not known, and not none', () => {
  assert.equal(parseProcessorTime(''), undefined);
  assert.equal(parseProcessorTime('cpu  1 2 3 4\n'), undefined, 'an old kernel');
  assert.equal(parseProcessorTime('cpu  a b c d e f g h\n'), undefined);
  const time = parseProcessorTime(STAT);
  assert.equal(stolenShare(undefined, time), null);
  assert.equal(stolenShare(time, undefined), null);
  assert.equal(stolenShare(time, time), null, 'no time has passed');
});

test('this machine tells', { skip: process.platform !== 'linux' && 'only Linux has /proc/stat' }, () => {
  assert.ok((processorTime()?.all ?? 0) > 0);
});
