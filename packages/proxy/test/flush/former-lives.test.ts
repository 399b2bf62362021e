import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EMPTY_JOURNAL, record, ZERO } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { createMemoryStore } from '@weir/store';
import { temporaryDirectory } from '@weir/testkit';
import { FormerLives } from '../../src/flush/former-lives.ts';
import { JournalFiles } from '../../src/flush/journal-files.ts';

const SLOT = { service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' };

/** A disk that takes nothing from one file on. */
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

test('an earlier life whose file cannot be written holds up neither the others nor us', async (t) => {
  const directory = temporaryDirectory('former-lives');
  t.after(() => directory.close());
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  await store.usage.seed({ months: [], bases: [] });
  const life = (number: number, sentBytes: number): ConstructorParameters<typeof FormerLives>[0][number] => ({
    file: `usage-${number}.json`,
    record: {
      life: number,
      journal: record(EMPTY_JOURNAL, [{ ...SLOT, counters: { ...ZERO, sentBytes } }], 0),
      recordedAt: clock.now(),
    },
  });
  const files = new FullDisk(directory.path, 'usage-1.json');
  const former = new FormerLives([life(1, 10), life(2, 20)], { node: 'n1', store, files, clock, log: silentLogger() });
  await former.flush();
  await former.flush();
  const [row] = await store.usage.rows('1970-01');
  assert.equal(row?.counters.sentBytes, 30);
});

test('a store that is away ends the round', async () => {
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  store.faults.goAway();
  const journal = record(EMPTY_JOURNAL, [{ ...SLOT, counters: { ...ZERO, sentBytes: 1 } }], 0);
  const found = [{ file: 'usage-1.json', record: { life: 1, journal, recordedAt: clock.now() } }];
  const files = new JournalFiles('/nowhere');
  const former = new FormerLives(found, { node: 'n1', store, files, clock, log: silentLogger() });
  await assert.rejects(former.flush(), { code: 'AWAY' });
});
