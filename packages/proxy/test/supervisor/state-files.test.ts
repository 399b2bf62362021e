import assert from 'node:assert/strict';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Entry } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { temporaryDirectory } from '@weir/testkit';
import { StateFiles, StateSaver } from '../../src/supervisor/state-files.ts';

const POSITION = { epoch: 1, revision: 2, id: 'x' };

for (const size of [0, 1, 200, 450]) {
  test(`reads a table of ${size} entries as it was when writing began`, async () => {
    await using directory = temporaryDirectory('state-copy');
    const files = new StateFiles(directory.path);
    const entries = new Map(
      Array.from({ length: size }, (_, index) => entryOf(`e${index}`)).map((each) => [each.id, each]),
    );
    const before = new Map(entries);
    const writing = files.writeTable({ table: { entries }, position: POSITION });
    entries.clear();
    entries.set('later', entryOf('later'));
    await writing;
    const read = await files.readTable();
    assert.deepEqual(read?.position, POSITION);
    assert.deepEqual(new Map(read?.table.entries), before);
  });
}

test('reads the shares of limits that were written, and no shares from a file that is damaged', async () => {
  await using directory = temporaryDirectory('state-copy');
  const files = new StateFiles(directory.path);
  assert.equal(await files.readShares(), undefined);
  const shares = new Map([
    ['tenant.shop:connections', 20],
    ['service.u1:outBitsPerSecond', 1_000_000_000],
  ]);
  await files.writeShares(shares);
  assert.deepEqual(await files.readShares(), shares);
  const path = join(directory.path, 'leases.json');
  writeFileSync(path, '{"version":1,"shares":{"tenant.shop:connections":-1,"tenant.a:connections":"x"}}');
  assert.deepEqual(await files.readShares(), new Map());
  writeFileSync(path, '{"version":1,"sha');
  assert.equal(await files.readShares(), undefined);
});

test('suspensions are on the disk before they take effect, and the newer of both files counts', async () => {
  await using directory = temporaryDirectory('state-copy');
  const files = new StateFiles(directory.path);
  const saver = new StateSaver({
    files,
    clock: new ManualClock(),
    log: silentLogger(),
    table: () => undefined,
    suspensions: () => undefined,
    shares: () => undefined,
  });
  await files.writeSuspensions({ cutoffs: [], sequence: 4 });
  saver.keepSuspensions({ cutoffs: [], sequence: 5 });
  assert.equal((await files.readSuspensions())?.sequence, 5);
  await files.writeSuspensions({ cutoffs: [], sequence: 6 });
  assert.equal((await files.readSuspensions())?.sequence, 6);
  assert.deepEqual(readdirSync(directory.path).sort(), ['cutoffs-unsynced.json', 'cutoffs.json']);
  saver.keepSuspensions({ cutoffs: [], sequence: 7 });
  writeFileSync(join(directory.path, 'cutoffs-unsynced.json'), '{"version":1,');
  assert.equal((await files.readSuspensions())?.sequence, 6, 'a damaged file is ignored');
  rmSync(directory.path, { recursive: true });
  saver.keepSuspensions({ cutoffs: [], sequence: 8 });
});

test('writes changed suspensions at once, also while the table is written and while its next write is not due', async () => {
  await using directory = temporaryDirectory('state-copy');
  const files = new StateFiles(directory.path);
  await files.readTable(); // creates the directory
  const entries = new Map(Array.from({ length: 450 }, (_, index) => [`e${index}`, entryOf(`e${index}`)]));
  let known = { cutoffs: [], sequence: 1 };
  const saver = new StateSaver({
    files,
    clock: new ManualClock(),
    log: silentLogger(),
    table: () => ({ table: { entries }, position: POSITION }),
    suspensions: () => known,
    shares: () => undefined,
  });
  saver.tick();
  for (const sequence of [2, 3]) {
    known = { cutoffs: [], sequence };
    await saver.saveSuspensions();
    assert.equal((await files.readSuspensions())?.sequence, sequence);
  }
  // The suspensions change while they are written.
  known = { cutoffs: [], sequence: 4 };
  const first = saver.saveSuspensions();
  await Promise.resolve();
  known = { cutoffs: [], sequence: 5 };
  await saver.saveSuspensions();
  assert.equal((await files.readSuspensions())?.sequence, 5);
  await first;
  await saver.close();
});

function entryOf(id: string): Entry {
  return { kind: 'tenant', id, name: id, policy: null, namespaces: [], limits: {}, used: { services: 0, ports: 0 } };
}
