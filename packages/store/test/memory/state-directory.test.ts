import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { minuteOf, periodsOf } from '@weir/model';
import { type Clock, ManualClock, silentLogger, systemClock } from '@weir/runtime';
import { eventually, temporaryDirectory } from '@weir/testkit';
import { StoreError } from '../../src/errors.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import { openMemoryStore } from '../../src/memory/open-memory-store.ts';
import {
  certificate,
  contentOf,
  contentOfEntries,
  entry,
  openEpochAsLeader,
  publish,
  put,
  putCertificate,
  report,
  suspension,
} from '../contract/sample-data.ts';

const NOW = minuteOf(Date.now());

describe('a memory store with a state directory', () => {
  test('keeps table, ledger, incarnations and suspensions through a restart', async (t) => {
    const directory = directoryOf(t);
    const before = await open(directory);
    const { leader, position: predecessor } = await openEpochAsLeader(before);
    const position = await publish(before, {
      leader,
      predecessor,
      changes: [put('a'), put('b', 3), putCertificate('u1')],
    });
    const life = await before.heartbeats.beginIncarnation('n1', 1);
    await before.usage.seed({ months: [], bases: [] });
    await before.usage.flush(
      report(
        [
          [NOW - 1, 10],
          [NOW, 25],
        ],
        { life },
      ),
    );
    await before.usage.flush(report([[NOW, 2 ** 52 + 1]], { node: 'n2', tenant: 'a/b' }));
    await before.usage.fold('n0', 4);
    await before.suspensions.put(suspension('a'));
    const { month } = periodsOf(NOW);
    const rows = await before.usage.rows(month);
    await before.close();

    const after = await open(directory);
    const copy = await after.table.read();
    assert.deepEqual(copy?.position, position);
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('a'), entry('b', 3), certificate('u1')));
    assert.deepEqual(await after.table.meta(), { ...position, complete: true, leader });
    assert.ok((await after.table.claimLeader()) > leader);
    assert.ok((await after.heartbeats.beginIncarnation('n1', 1)) > life);
    assert.equal(await after.usage.isSeeded(), true);
    assert.deepEqual(await after.usage.rows(month), rows);
    assert.deepEqual(await after.usage.flush(report([[NOW, 1]], { node: 'n0', life: 4 })), { kind: 'folded' });
    await after.usage.flush(report([[NOW, 26]], { life }));
    const [shop] = await after.usage.rows(periodsOf(NOW).minute, 'shop');
    assert.equal(shop?.counters.receivedBytes, 16);
    const state = await after.suspensions.read();
    assert.deepEqual(state.suspensions, [suspension('a')]);
    assert.equal(state.completeSince, null);
    await after.close();
  });

  test('keeps requests by code class, and reads a ledger of a version without them', async (t) => {
    const directory = directoryOf(t);
    const before = await open(directory);
    const flushed = report([[NOW, 10]]);
    const slot = flushed.slots[0] ?? assert.fail('a report has a slot');
    const codeClasses = { '2xx': 1, '3xx': 0, '4xx': 2, '5xx': 0, none: 0 };
    const counters = { receivedBytes: 10, sentBytes: 0, connections: 1, requests: 3, requestsByCodeClass: codeClasses };
    await before.usage.seed({ months: [], bases: [] });
    await before.usage.flush({ ...flushed, slots: [{ ...slot, points: [{ minute: NOW, counters }] }] });
    await before.close();
    const after = await open(directory);
    const { month } = periodsOf(NOW);
    assert.deepEqual((await after.usage.rows(month))[0]?.counters, counters);
    await after.close();
    const file = join(directory, 'store-ledger.json');
    const ledger = JSON.parse(readFileSync(file, 'utf8'));
    for (const [, rows] of ledger.sums) for (const row of rows) row.length = 8;
    writeFileSync(file, JSON.stringify(ledger));
    const old = await open(directory);
    const { requestsByCodeClass: _, ...oldCounters } = counters;
    assert.deepEqual((await old.usage.rows(month))[0]?.counters, oldCounters);
    await old.close();
  });

  test('keeps the series, and reads the minutes, hours and days of an earlier version', async (t) => {
    const directory = directoryOf(t);
    const first = await open(directory);
    await first.usage.seed({ months: [], bases: [] });
    await first.usage.flush(report([[NOW, 10]]));
    await first.close();
    const file = join(directory, 'store-ledger.json');
    const { series, ...ledger } = JSON.parse(readFileSync(file, 'utf8'));
    const [[, rows]] = ledger.sums;
    const sums = Object.values(periodsOf(NOW)).map((period) => [period, rows]);
    const { minute } = periodsOf(NOW);
    const refused = { bases: [], sums: [[minute, 'u1/shop', { 'rate-limit': 2 }]] };
    const earlier = JSON.stringify({ ...ledger, sums, refused });
    for (const text of [JSON.stringify({ ...ledger, series }), earlier]) {
      writeFileSync(file, text);
      const store = await open(directory);
      for (const length of ['minute', 'hour', 'day'] as const) {
        for (const service of ['u1', undefined]) {
          const points = await store.usage.series({ tenant: 'shop', service, length, from: 0, until: NOW + 1 });
          assert.equal(points.length, 1);
          assert.equal(points[0]?.counters.receivedBytes, 10);
          const isRefused = text === earlier && length === 'minute';
          assert.deepEqual(points[0].counters.refused, isRefused ? { 'rate-limit': 2 } : undefined);
        }
      }
      await store.close();
    }
    series[0][3][0] = 'not a number';
    writeFileSync(file, JSON.stringify({ ...ledger, series }));
    await assert.rejects(open(directory), { code: 'DAMAGED' });
  });

  test('keeps refusals, and reads a ledger of a version without them', async (t) => {
    const directory = directoryOf(t);
    const before = await open(directory);
    const flushed = report([[NOW, 10]]);
    const slot = flushed.slots[0] ?? assert.fail('a report has a slot');
    const oldCounters = { receivedBytes: 10, sentBytes: 0, connections: 1, requests: 0 };
    const counters = { ...oldCounters, refused: { 'rate-limit': 4 } };
    await before.usage.seed({ months: [], bases: [] });
    await before.usage.flush({ ...flushed, slots: [{ ...slot, points: [{ minute: NOW, counters }] }] });
    await before.close();
    const after = await open(directory);
    const { month } = periodsOf(NOW);
    assert.deepEqual((await after.usage.rows(month))[0]?.counters, counters);
    assert.deepEqual((await after.usage.exportSeed([])).bases[0]?.counters, counters);
    await after.close();
    const file = join(directory, 'store-ledger.json');
    const { refused, ...oldLedger } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify(oldLedger));
    const old = await open(directory);
    assert.deepEqual((await old.usage.rows(month))[0]?.counters, oldCounters);
    await old.close();
    refused.sums[0][2]['rate-limit'] = -1;
    writeFileSync(file, JSON.stringify({ ...oldLedger, refused }));
    await assert.rejects(open(directory), { code: 'DAMAGED' });
  });

  test('lets a follower continue from its position after a restart', async (t) => {
    const directory = directoryOf(t);
    const before = await open(directory);
    const { leader, position: predecessor } = await openEpochAsLeader(before);
    const position = await publish(before, { leader, predecessor, changes: [put('a')] });
    await before.close();
    const after = await open(directory);
    const stopped = new AbortController();
    const revisions = after.table.revisions({ after: position, signal: stopped.signal })[Symbol.asyncIterator]();
    const next = revisions.next();
    await publish(after, { leader, predecessor: position, changes: [put('b')] });
    assert.deepEqual((await next).value?.changes, [put('b')]);
    stopped.abort();
    await after.close();
  });

  test('writes incarnations and suspensions before the call returns, other sections within a second', async (t) => {
    const directory = directoryOf(t);
    const clock = new ManualClock();
    const store = await open(directory, clock);
    await store.suspensions.put(suspension('a'));
    await store.heartbeats.beginIncarnation('n1', 5);
    assert.deepEqual(readdirSync(directory).sort(), ['store-cutoffs.json', 'store-lives.json']);
    await store.usage.seed({ months: [], bases: [] });
    await store.table.claimLeader();
    await clock.advance(999);
    assert.equal(readdirSync(directory).length, 2);
    await clock.advance(1);
    await eventually(() =>
      assert.deepEqual(readdirSync(directory).sort(), [
        'store-cutoffs.json',
        'store-ledger.json',
        'store-lives.json',
        'store-table.json',
      ]),
    );
    assert.equal(clock.pendingTimers, 0);
    await store.close();
  });

  test('keeps suspensions of the store and of files that are in force', async (t) => {
    const directory = directoryOf(t);
    const clock = new ManualClock();
    const before = await open(directory, clock);
    await before.suspensions.put(suspension('file', { origin: { kind: 'file', path: 'x.yaml' } }));
    await before.suspensions.put(suspension('object', { origin: { kind: 'kubernetes' } }));
    await before.suspensions.put(suspension('past', { until: clock.now() + 1_000 }));
    await before.suspensions.put(suspension('later', { until: clock.now() + 9_000 }));
    await before.suspensions.put(suspension('gone'));
    await before.suspensions.remove('gone', { suspension: suspension('gone'), why: 'resumed' });
    const { sequence } = await before.suspensions.read();
    await before.close();
    await clock.advance(1_000);
    const after = await open(directory, clock);
    const state = await after.suspensions.read();
    assert.deepEqual(
      state.suspensions.map(({ uid }) => uid),
      ['file', 'later'],
    );
    assert.equal(state.sequence, sequence);
    assert.equal((await after.suspensions.audit()).length, 6, 'the audit trail is kept, too');
    await after.close();
  });

  test('refuses a damaged file with its path and the fix, and does not overwrite it', async (t) => {
    for (const part of ['table', 'ledger', 'cutoffs', 'lives']) {
      const directory = directoryOf(t);
      await fill(directory);
      const path = join(directory, `store-${part}.json`);
      const good = readFileSync(path, 'utf8');
      const others = part === 'ledger' ? [good.replace('"r1"', '7')] : [];
      for (const bad of [
        '',
        good.slice(0, -5),
        'null',
        '[]',
        '{}',
        good.replace(`"weir":"${part}"`, '"weir":"other"'),
        `{"weir":"${part}","version":1}`,
        ...others,
      ]) {
        assert.notEqual(bad, good);
        writeFileSync(path, bad);
        await assert.rejects(open(directory), (error) => {
          assert.ok(error instanceof StoreError && error.code === 'DAMAGED');
          assert.ok(error.message.startsWith(`the state file ${path} is damaged`), error.message);
          assert.match(error.message, /restore it from a backup, or move the file away \(then [^\n]+\)$/);
          return true;
        });
        assert.equal(readFileSync(path, 'utf8'), bad);
      }
      writeFileSync(path, good);
      await (await open(directory)).close();
    }
  });

  test('refuses a file of another version', async (t) => {
    const directory = directoryOf(t);
    await fill(directory);
    const path = join(directory, 'store-table.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":2'));
    await assert.rejects(
      open(directory),
      /was written by another version of Weir; run that version, or move the file away/,
    );
  });

  test('refuses an unreadable file and an unusable directory', async (t) => {
    const directory = directoryOf(t);
    mkdirSync(join(directory, 'store-ledger.json'));
    await assert.rejects(open(directory), /store-ledger\.json cannot be read \(EISDIR/);
    const file = join(directory, 'file');
    writeFileSync(file, '');
    await assert.rejects(
      open(join(file, 'state')),
      /the state directory .*state cannot be used \(ENOTDIR.*choose a directory/,
    );
  });

  test('refuses a directory that cannot be created instead of retrying forever', { timeout: 5_000 }, async () => {
    const directory = process.platform === 'linux' ? '/proc/weir/state' : '/dev/null/weir/state';
    await assert.rejects(open(directory), { code: 'DAMAGED', message: /cannot be used .*; choose a directory/ });
  });

  test('refuses a directory in use, under any path, until the first store closes', async (t) => {
    const directory = directoryOf(t);
    await fill(directory);
    const first = await open(directory);
    const link = join(directoryOf(t), 'link');
    symlinkSync(directory, link);
    for (const name of [directory, link]) {
      await assert.rejects(open(name), {
        code: 'DAMAGED',
        message: /is in use by another process; stop that process, or choose/,
      });
    }
    await first.usage.flush(report([[NOW, 10]], { service: 'r2' }));
    await first.close();
    const after = await open(directory);
    assert.equal((await after.usage.rows(periodsOf(NOW).month)).length, 2);
    await after.close();
  });

  test('ignores a temporary file that a crash left', async (t) => {
    const directory = directoryOf(t);
    await fill(directory);
    writeFileSync(join(directory, 'store-ledger.json.0a1b2c3d4e5f.tmp'), '{"weir":"led');
    const store = await open(directory);
    assert.equal(await store.usage.isSeeded(), true);
    await store.close();
  });

  test('keeps serving if a write fails, and rejects at close', async (t) => {
    const directory = directoryOf(t);
    const clock = new ManualClock();
    const store = await open(directory, clock);
    // A directory at the file's path makes the write fail even for root. File modes do not restrict root.
    mkdirSync(join(directory, 'store-lives.json'));
    assert.equal(await store.heartbeats.beginIncarnation('n1', 5_000_000_000), 5_000_000_000);
    await assert.rejects(store.close(), { code: 'DAMAGED' });
    assert.equal(clock.pendingTimers, 0);
  });

  test('writes files that only their owner can read', async (t) => {
    const directory = directoryOf(t);
    await fill(directory);
    for (const name of readdirSync(directory)) assert.equal(statSync(join(directory, name)).mode & 0o077, 0);
  });
});

function directoryOf(t: TestContext): string {
  const directory = temporaryDirectory('state');
  t.after(() => directory.close());
  return directory.path;
}

function open(directory: string, clock: Clock = systemClock): Promise<MemoryStore> {
  return openMemoryStore({ directory, clock, log: silentLogger() });
}

async function fill(directory: string): Promise<void> {
  const store = await open(directory);
  const { leader, position: predecessor } = await openEpochAsLeader(store);
  await publish(store, { leader, predecessor, changes: [put('a')] });
  await store.heartbeats.beginIncarnation('n1', 1);
  await store.usage.seed({ months: [], bases: [] });
  await store.usage.flush(report([[NOW, 10]], { service: 'r1' }));
  await store.suspensions.put(suspension('a'));
  await store.close();
}
