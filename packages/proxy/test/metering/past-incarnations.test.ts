import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { EMPTY_JOURNAL, recordUsage, ZERO_COUNTERS } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { MemoryStore, StoreError } from '@weir/store';
import { temporaryDirectory } from '@weir/testkit';
import { JournalFiles } from '../../src/metering/journal-files.ts';
import { PastIncarnations } from '../../src/metering/past-incarnations.ts';

const SLOT = { key: 'uid|shop', service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' };

/** The journal files on a disk where one of the files cannot be written. */
class FullDisk extends JournalFiles {
  readonly #file: string;

  constructor(directory: string, file: string) {
    super(directory);
    this.#file = file;
  }

  override async write(...[file, content]: Parameters<JournalFiles['write']>): Promise<void> {
    if (file === this.#file) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    await super.write(file, content);
  }
}

test('reports all past incarnations although the file of one cannot be written', async (t) => {
  const directory = temporaryDirectory('past-incarnations');
  t.after(() => directory.close());
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  await store.usage.seed({ months: [], bases: [] });
  const life = (number: number, sentBytes: number): ConstructorParameters<typeof PastIncarnations>[0][number] => ({
    file: `usage-${number}.json`,
    record: {
      incarnation: number,
      journal: recordUsage(EMPTY_JOURNAL, [{ ...SLOT, counters: { ...ZERO_COUNTERS, sentBytes } }], 0),
      recordedAt: clock.now(),
    },
  });
  const files = new FullDisk(directory.path, 'usage-1.json');
  const past = new PastIncarnations([life(1, 10), life(2, 20)], {
    node: 'n1',
    store,
    files,
    clock,
    log: silentLogger(),
  });
  await past.flush();
  await past.flush();
  const [row] = await store.usage.rows('1970-01');
  assert.equal(row?.counters.sentBytes, 30);
});

test('gives a number to each past incarnation before it says that the store refuses usage', async (t) => {
  const directory = temporaryDirectory('past-incarnations');
  t.after(() => directory.close());
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  t.mock.method(store.usage, 'flush', () => Promise.reject(new StoreError('REFUSED', 'OOM')));
  const journal = recordUsage(EMPTY_JOURNAL, [{ ...SLOT, counters: { ...ZERO_COUNTERS, sentBytes: 1 } }], 0);
  const records = [1, undefined].map((incarnation) => ({ incarnation, journal, recordedAt: clock.now() }));
  const found = records.map((record, index) => ({ file: `usage-found-${index}.json`, record }));
  const files = new JournalFiles(directory.path);
  const past = new PastIncarnations(found, { node: 'n1', store, files, clock, log: silentLogger() });
  await assert.rejects(past.flush(), { code: 'REFUSED' });
  assert.match(readdirSync(directory.path).join(), /^usage-\d+\.json$/, 'the second has a file with its number');
});

test('rejects a flush while the store is unreachable', async () => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  store.faults.goAway();
  const journal = recordUsage(EMPTY_JOURNAL, [{ ...SLOT, counters: { ...ZERO_COUNTERS, sentBytes: 1 } }], 0);
  const found = [{ file: 'usage-1.json', record: { incarnation: 1, journal, recordedAt: clock.now() } }];
  const files = new JournalFiles('/nowhere');
  const past = new PastIncarnations(found, { node: 'n1', store, files, clock, log: silentLogger() });
  await assert.rejects(past.flush(), { code: 'AWAY' });
});
