// Tests the manifests of docs/examples: five well-known kinds of application, as their authors would write the manifests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { golden, spawnProcess } from '@weir/testkit';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('weir translate turns the unmodified example manifests into the golden table and problems', async () => {
  const args = ['translate', '-f', `${root}docs/examples`, '--classless', '-o', 'json'];
  const command = await spawnProcess({
    command: process.execPath,
    args: [`${root}packages/cli/bin/weir.js`, ...args],
    mayExit: true,
  });
  const { code } = await command.exited;
  const output = JSON.parse(command.stdout()) as { problems: { code: string; severity: string }[] };
  const errors = output.problems.filter(({ severity }) => severity === 'error').map((problem) => problem.code);
  assert.deepEqual(errors, []);
  assert.equal(code, 0);
  golden(new URL('examples.golden.json', import.meta.url), output);
});
