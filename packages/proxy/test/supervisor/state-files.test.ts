import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Entry } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { eventually, temporaryDirectory } from '@weir/testkit';
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
    saver.saveSuspensions();
    await eventually(async () => assert.equal((await files.readSuspensions())?.sequence, sequence));
  }
  await saver.close();
});

function entryOf(id: string): Entry {
  return { kind: 'tenant', id, name: id, policy: null, namespaces: [], limits: {}, used: { services: 0, ports: 0 } };
}
