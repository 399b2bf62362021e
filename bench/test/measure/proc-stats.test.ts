import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { inspectorUrlIn } from '../../src/measure/inspector.ts';
import {
  type CpuTime,
  cpuTimeOf,
  cpuTimeWithoutMainThread,
  descriptorLimit,
  mainThreadCpuTimeOf,
  maxIdleConnections,
  parseDescriptorLimit,
  parseProcessorTicks,
  parseProcessStat,
  parseSchedstat,
  parseSmapsRollup,
  readProcessorTicks,
  residentKiB,
  runQueueMsOf,
  stealShare,
} from '../../src/measure/proc-stats.ts';

const STAT_FIELDS =
  'S 4021 4048 4021 34816 4048 4194304 905 12 1 0 123 45 6 7 20 0 11 0 220178 1093 455 18446744073709551615';

describe('CPU time', () => {
  test('reads utime and stime from the fields 14 and 15, in hundredths of a second', () => {
    assert.deepEqual(parseProcessStat(`4048 (haproxy) ${STAT_FIELDS}`), { userMs: 1230, systemMs: 450 });
  });

  test('accepts a process name with spaces and parentheses', () => {
    assert.deepEqual(parseProcessStat(`4048 (a (b) 1 2) c) ${STAT_FIELDS}`), { userMs: 1230, systemMs: 450 });
  });

  test('rejects other text', () => {
    assert.throws(() => parseProcessStat('4048 (haproxy) S 1 2 3'), /not a line/);
  });

  test('reads the CPU time of this process', () => {
    const { userMs, systemMs } = cpuTimeOf(process.pid);
    assert.ok(userMs + systemMs > 0);
  });

  test('tells the CPU time of the main thread from that of the other threads', async () => {
    const mainBefore = sum(mainThreadCpuTimeOf(process.pid));
    const othersBefore = sum(cpuTimeWithoutMainThread(process.pid));
    const program = `
      const { threadCpuUsage } = require('node:process');
      while (threadCpuUsage().user < 200_000);`;
    await once(new Worker(program, { eval: true }), 'exit');
    const main = sum(mainThreadCpuTimeOf(process.pid)) - mainBefore;
    const others = sum(cpuTimeWithoutMainThread(process.pid)) - othersBefore;
    assert.ok(others >= 180, `${others}`);
    assert.ok(main < 180, `${main}`);
  });
});

function sum({ userMs, systemMs }: CpuTime): number {
  return userMs + systemMs;
}

test('reads the time in the run queue from the second field of schedstat', () => {
  assert.equal(parseSchedstat('1116000000 246500000 977\n'), 246.5);
  assert.throws(() => parseSchedstat('nothing'), /not a line of/);
});

test('reads the time in the run queue of a running process', () => {
  assert.ok(runQueueMsOf(process.pid) >= 0);
});

describe('process limits and memory', () => {
  test('reads resident memory as the sum over the mappings', () => {
    const text =
      '55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:               17708 kB\nPss:                1234 kB\n';
    assert.equal(parseSmapsRollup(text), 17_708);
    assert.throws(() => parseSmapsRollup('Pss: 1 kB\n'), /not \/proc/);
    assert.ok(residentKiB(process.pid) > 10_000);
  });

  test('reads the hard limit of descriptors', () => {
    const line = (hard: string): string =>
      `Max processes  10  20  processes\nMax open files            1024      ${hard}    files\n`;
    assert.equal(parseDescriptorLimit(line('20000')), 20_000);
    assert.equal(parseDescriptorLimit(line('unlimited')), Number.POSITIVE_INFINITY);
    assert.throws(() => parseDescriptorLimit('Max processes 1 2\n'), /not \/proc/);
    assert.ok(descriptorLimit() > 0);
  });

  test('allows two descriptors for each idle connection, and at most 10,000 connections', () => {
    assert.equal(maxIdleConnections(20_000), 7_200);
    assert.equal(maxIdleConnections(Number.POSITIVE_INFINITY), 10_000);
  });

  test('finds the URL of the inspector', () => {
    const said = 'Debugger listening on ws://127.0.0.1:9229/0a-1\nFor help, see: https://nodejs.org\nready\n';
    assert.equal(inspectorUrlIn(said), 'ws://127.0.0.1:9229/0a-1');
    assert.equal(inspectorUrlIn('ready\n'), undefined);
  });
});

const PROC_STAT = 'cpu  100 10 50 800 5 0 15 20 7 3\ncpu0 50 5 25 400 2 0 7 10 3 1\nintr 1\n';

test('returns the stolen share of the time of all processors', () => {
  const before = parseProcessorTicks(PROC_STAT);
  assert.deepEqual(before, { total: 1_000, stolen: 20 });
  const after = parseProcessorTicks('cpu  150 10 70 810 5 0 15 40 7 3\n');
  assert.equal(stealShare(before, after), 0.2);
});

test('returns null if the stolen share is unknown', () => {
  assert.equal(parseProcessorTicks(''), undefined);
  assert.equal(parseProcessorTicks('cpu  1 2 3 4\n'), undefined, 'an old kernel');
  assert.equal(parseProcessorTicks('cpu  a b c d e f g h\n'), undefined);
  const time = parseProcessorTicks(PROC_STAT);
  assert.equal(stealShare(undefined, time), null);
  assert.equal(stealShare(time, undefined), null);
  assert.equal(stealShare(time, time), null, 'no time has passed');
});

test('reads the ticks of this machine', { skip: process.platform !== 'linux' && 'only Linux has /proc/stat' }, () => {
  assert.ok((readProcessorTicks()?.total ?? 0) > 0);
});
