import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { SKIP_REASONS_VARIABLE } from '../src/test-runner/reporter.ts';
import { parseTestArguments, selectTestFiles } from '../src/test-runner/select-tests.ts';

describe('the arguments of npm test', () => {
  test('select the end-to-end tests only by the first word', () => {
    assert.deepEqual(parseTestArguments(['e2e']), { suite: 'e2e', filters: [], flags: [] });
    assert.deepEqual(parseTestArguments(['store', 'e2e']), { suite: 'all', filters: ['store', 'e2e'], flags: [] });
  });

  test('pass flags to node, with values in either spelling', () => {
    assert.deepEqual(parseTestArguments(['store', '--test-name-pattern', 'lua', '--test-only', '--test-shard=1/2']), {
      suite: 'all',
      filters: ['store'],
      flags: ['--test-name-pattern=lua', '--test-only', '--test-shard=1/2'],
    });
  });
});

test('only npm run e2e runs tests on real nodes and the fault suite', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  for (const file of ['e2e/test/cluster/services.test.ts', 'e2e/test/faults/faults.test.ts']) {
    assert.ok(selectTestFiles(root, { suite: 'e2e', filters: [] }).includes(file));
    assert.deepEqual(selectTestFiles(root, { suite: 'all', filters: [file] }), []);
  }
});

test('the reporter prints skip reasons once, just before the final summary', async () => {
  await using folder = temporaryDirectory('reporter');
  const file = join(folder.path, 'small.test.ts');
  writeFileSync(file, `import { test } from 'node:test'; test('adds', (t) => t.diagnostic('tests 1'));`);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const reporter = fileURLToPath(new URL('../src/test-runner/reporter.ts', import.meta.url));
  const runner = await spawnProcess({
    command: process.execPath,
    args: ['--test', `--test-reporter=${reporter}`, '--test-reporter-destination=stdout', file],
    env: { ...env, [SKIP_REASONS_VARIABLE]: JSON.stringify(['redis-server is missing']) },
    mayExit: true,
  });
  assert.equal((await runner.exited).code, 0);
  const lines = runner.stdout().trimEnd().split('\n');
  assert.match(lines.at(-1) ?? '', /duration_ms/);
  const position = lines.indexOf('﹣ skipped tests: redis-server is missing');
  assert.match(lines[position + 1] ?? '', /tests 1$/);
  assert.ok(position > lines.findIndex((line) => line.includes('adds')));
  assert.equal(lines.lastIndexOf('﹣ skipped tests: redis-server is missing'), position);
});
