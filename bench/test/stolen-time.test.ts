import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProcessorTicks, readProcessorTicks, stealShare } from '../src/measure/stolen-time.ts';

const PROC_STAT = 'cpu  100 10 50 800 5 0 15 20 7 3\ncpu0 50 5 25 400 2 0 7 10 3 1\nintr 1\n';

test('what the host took is a share of all the time of all processors', () => {
  const before = parseProcessorTicks(PROC_STAT);
  assert.deepEqual(before, { all: 1_000, stolen: 20 });
  const after = parseProcessorTicks('cpu  150 10 70 810 5 0 15 40 7 3\n');
  assert.equal(stealShare(before, after), 0.2);
});

test('where nothing tells of it, it is not known, and not none', () => {
  assert.equal(parseProcessorTicks(''), undefined);
  assert.equal(parseProcessorTicks('cpu  1 2 3 4\n'), undefined, 'an old kernel');
  assert.equal(parseProcessorTicks('cpu  a b c d e f g h\n'), undefined);
  const time = parseProcessorTicks(PROC_STAT);
  assert.equal(stealShare(undefined, time), null);
  assert.equal(stealShare(time, undefined), null);
  assert.equal(stealShare(time, time), null, 'no time has passed');
});

test('this machine tells', { skip: process.platform !== 'linux' && 'only Linux has /proc/stat' }, () => {
  assert.ok((readProcessorTicks()?.all ?? 0) > 0);
});
