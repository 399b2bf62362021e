import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { spawnProcess, temporaryDirectory } from '../src/index.ts';

test('close removes a temporary directory with its content', async () => {
  const one = temporaryDirectory();
  const other = temporaryDirectory();
  assert.notEqual(one.path, other.path);
  writeFileSync(join(one.path, 'file'), 'text');
  await one.close();
  assert.ok(!existsSync(one.path));
  assert.ok(existsSync(other.path));
  await other.close();
});

test('the exit of the process removes a forgotten temporary directory', async () => {
  const script = `
    import { temporaryDirectory } from '${new URL('../src/index.ts', import.meta.url)}';
    await temporaryDirectory().close();
    console.log(temporaryDirectory().path);`;
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    mayExit: true,
  });
  assert.equal((await child.exited).code, 0);
  assert.match(child.stdout(), /weir-test-/);
  assert.ok(!existsSync(child.stdout().trim()));
});
