import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry } from '@weir/model';
import { temporaryDirectory } from '@weir/testkit';
import { StateFiles } from '../../src/supervisor/state-files.ts';

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

function entryOf(id: string): Entry {
  return { kind: 'tenant', id, name: id, policy: null, namespaces: [], limits: {}, used: { services: 0, ports: 0 } };
}
