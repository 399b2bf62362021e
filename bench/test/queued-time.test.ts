import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSchedstat, runQueueMsOf } from '../src/measure/queued-time.ts';

test('the time in the queue is the second figure of schedstat', () => {
  assert.equal(parseSchedstat('1116000000 246500000 977\n'), 246.5);
  assert.throws(() => parseSchedstat('nothing'), /not a line of/);
});

test('it is told of a process that runs', () => {
  assert.ok(runQueueMsOf(process.pid) >= 0);
});
