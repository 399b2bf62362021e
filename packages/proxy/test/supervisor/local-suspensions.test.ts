import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Suspension } from '@weir/model/data-plane';
import { type Logger, silentLogger, systemClock } from '@weir/runtime';
import { temporaryDirectory } from '@weir/testkit';
import { LocalSuspensions } from '../../src/supervisor/local-suspensions.ts';

test('a suspension holds although the file cannot be written, and is written once this is possible', async () => {
  await using directory = temporaryDirectory('local-suspensions');
  // A file in place of the directory makes every write fail, also for root.
  const blocked = join(directory.path, 'proxy-a');
  writeFileSync(blocked, '');
  const path = join(blocked, 'local-suspensions.json');
  const applied: (readonly Suspension[])[] = [];
  const suspensions = new LocalSuspensions({
    path,
    node: 'a',
    clock: systemClock,
    log: silentLogger(),
    onChange: (inForce) => void applied.push(inForce),
  });
  const target = { kind: 'tenant', tenant: 'shop' } as const;
  const made = await suspensions.suspend({ target, message: 'x', until: null, madeBy: undefined });
  assert.deepEqual(applied, [[made]]);
  assert.equal(suspensions.isSaved, false);
  await suspensions.sync();
  assert.deepEqual([suspensions.inForce, suspensions.isSaved], [[made], false]);
  rmSync(blocked);
  await suspensions.sync();
  assert.deepEqual([suspensions.inForce, suspensions.isSaved], [[made], true]);
  assert.ok(existsSync(path));
  await suspensions.close();
});

test('logs an unreadable file once, and again only after the file was readable', async () => {
  await using directory = temporaryDirectory('local-suspensions');
  const path = join(directory.path, 'local-suspensions.json');
  const errors: unknown[] = [];
  const log = { ...silentLogger(), error: (...line: unknown[]) => void errors.push(line) } as Logger;
  const suspensions = new LocalSuspensions({ path, node: 'a', clock: systemClock, log, onChange: () => undefined });
  for (const expected of [1, 2]) {
    // A directory in place of the file makes every read fail, also for root.
    mkdirSync(path);
    await suspensions.sync();
    await suspensions.sync();
    assert.equal(errors.length, expected);
    rmdirSync(path);
    await suspensions.sync();
  }
  await suspensions.close();
});
