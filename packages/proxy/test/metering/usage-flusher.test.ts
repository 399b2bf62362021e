import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { minuteOf } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { MemoryStore, StoreError } from '@weir/store';
import { temporaryDirectory } from '@weir/testkit';
import { counterRow, RECEIVED } from '../../src/metering/counters.ts';
import { JournalFiles } from '../../src/metering/journal-files.ts';
import { PastIncarnations } from '../../src/metering/past-incarnations.ts';
import { SlotRegistry } from '../../src/metering/slot-registry.ts';
import { UsageFlusher } from '../../src/metering/usage-flusher.ts';

/** The journal files on a disk where the first write of a numbered file, or the first removal, fails. */
class FaultyDisk extends JournalFiles {
  #failing: 'write' | 'remove' | undefined;

  constructor(directory: string, failing: 'write' | 'remove') {
    super(directory);
    this.#failing = failing;
  }

  override async write(...[file, record]: Parameters<JournalFiles['write']>): Promise<void> {
    if (record.incarnation !== undefined) this.#failOnce('write');
    await super.write(file, record);
  }

  override async remove(file: string): Promise<void> {
    this.#failOnce('remove');
    await super.remove(file);
  }

  #failOnce(operation: 'write' | 'remove'): void {
    if (this.#failing !== operation) return;
    this.#failing = undefined;
    throw Object.assign(new Error('input/output error'), { code: 'EIO' });
  }
}

for (const failing of ['write', 'remove'] as const) {
  test(`leaves one journal on the disk after the first ${failing} has failed, so that no usage is reported twice`, async (t) => {
    const directory = temporaryDirectory('usage-flusher');
    t.after(() => directory.close());
    const clock = new ManualClock();
    const store = new MemoryStore({ clock });
    // Without an acknowledgement the journal stays as it is, so that only the failure makes the next write necessary.
    t.mock.method(store.usage, 'flush', () => Promise.reject(new Error('the ledger is unreachable')));
    const journalFiles = new FaultyDisk(directory.path, failing);
    const log = silentLogger();
    const pastIncarnations = new PastIncarnations([], { node: 'a', store, files: journalFiles, clock, log });
    const slots = new SlotRegistry();
    const blocks = slots.createBlocks();
    slots.addWorker(1, blocks);
    const { index } = slots.assign({ service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' });
    const row = counterRow(blocks, index);
    row[RECEIVED] = 10;
    const flusher = new UsageFlusher({
      node: 'a',
      store,
      slots,
      clock,
      log,
      highestIncarnation: 0,
      state: { journalFiles, pastIncarnations },
      onIncarnation: () => undefined,
    });
    await journalFiles.read();
    await flusher.writeJournal();
    await assert.rejects(flusher.flush());
    await flusher.writeJournal();
    const files = readdirSync(directory.path);
    assert.deepEqual(files, [`usage-${flusher.incarnation}.json`]);
  });
}

test('gets a number although the ledger refuses the usage of a past incarnation', async () => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const pastIncarnations = { flush: () => Promise.reject(new StoreError('REFUSED', 'OOM')), unacknowledgedPoints: 1 };
  const flusher = new UsageFlusher({
    node: 'a',
    store,
    slots: new SlotRegistry(),
    clock,
    log: silentLogger(),
    highestIncarnation: 0,
    state: {
      journalFiles: new FaultyDisk('/nowhere', 'write'),
      pastIncarnations: pastIncarnations as unknown as PastIncarnations,
    },
    onIncarnation: () => undefined,
  });
  await assert.rejects(flusher.flush(), { code: 'REFUSED' });
  assert.notEqual(flusher.incarnation, undefined);
  assert.match(flusher.warning ?? '', /OOM/);
});

test('reports how long the ledger has lacked usage, and how many points wait', async (t) => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  await store.usage.seed({ months: [], bases: [] });
  const slots = new SlotRegistry();
  const blocks = slots.createBlocks();
  slots.addWorker(1, blocks);
  const { index } = slots.assign({ service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' });
  const row = counterRow(blocks, index);
  const flusher = new UsageFlusher({
    node: 'a',
    store,
    slots,
    clock,
    log: silentLogger(),
    highestIncarnation: 0,
    state: undefined,
    onIncarnation: () => undefined,
  });
  row[RECEIVED] = 10;
  await flusher.flush();
  assert.deepEqual(flusher.backlog, { points: 0, ageMs: 0 });
  const reportedAt = clock.now();
  assert.equal(flusher.reportedAt, reportedAt);

  store.faults.goAway();
  t.after(() => store.close());
  for (let minute = 1; minute <= 3; minute += 1) {
    await clock.advance(60_000);
    row[RECEIVED] = 10 + minute;
    await assert.rejects(flusher.flush(), { code: 'AWAY' });
  }
  assert.deepEqual(flusher.backlog, { points: 3, ageMs: 180_000 });
  assert.equal(flusher.reportedAt, reportedAt, 'the ledger lacks usage since then');

  store.faults.comeBack();
  await flusher.flush();
  assert.deepEqual(flusher.backlog, { points: 0, ageMs: 0 });
  assert.equal(flusher.reportedAt, clock.now());
});

test('reports each minute of an outage of five hours in its own minute', async (t) => {
  const clock = new ManualClock(Date.UTC(2028, 1, 29, 21));
  const store = new MemoryStore({ clock });
  t.after(() => store.close());
  await store.usage.seed({ months: [], bases: [] });
  const slots = new SlotRegistry();
  const blocks = slots.createBlocks();
  slots.addWorker(1, blocks);
  const { index } = slots.assign({ service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' });
  const row = counterRow(blocks, index);
  const flusher = new UsageFlusher({
    node: 'a',
    store,
    slots,
    clock,
    log: silentLogger(),
    highestIncarnation: 0,
    state: undefined,
    onIncarnation: () => undefined,
  });
  await flusher.flush();
  store.faults.goAway();
  const from = minuteOf(clock.now());
  const received: number[] = [];
  for (let minute = 0; minute < 300; minute += 1) {
    row[RECEIVED] = (row[RECEIVED] ?? 0) + minute + 1;
    received.push(minute + 1);
    await assert.rejects(flusher.flush(), { code: 'AWAY' });
    await clock.advance(60_000);
  }
  store.faults.comeBack();
  await flusher.flush();
  await flusher.flush();
  const until = minuteOf(clock.now()) + 1;
  const points = await store.usage.series({ tenant: 'shop', service: 'uid', length: 'minute', from, until });
  assert.deepEqual(
    points.map(({ minute, counters }) => [minute - from, counters.receivedBytes]),
    received.map((bytes, minute) => [minute, bytes]),
  );
  const hours = await store.usage.series({ tenant: 'shop', length: 'hour', from, until });
  assert.deepEqual(
    hours.map(({ counters }) => counters.receivedBytes),
    [1_830, 5_430, 9_030, 12_630, 16_230],
  );
});
