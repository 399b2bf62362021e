import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { SKIP_REASONS_VARIABLE } from '../src/test-runner/reporter.ts';
import { parseTestArguments, selectTestFiles } from '../src/test-runner/select-tests.ts';

describe('the arguments of npm test', () => {
  test('choose the end-to-end tests by their first word alone', () => {
    assert.deepEqual(parseTestArguments(['e2e']), { suite: 'e2e', filters: [], flags: [] });
    assert.deepEqual(parseTestArguments(['store', 'e2e']), { suite: 'all', filters: ['store', 'e2e'], flags: [] });
  });

  test('hand flags to node, with their value in either spelling', () => {
    assert.deepEqual(parseTestArguments(['store', '--test-name-pattern', 'lua', '--test-only', '--test-shard=1/2']), {
      suite: 'all',
      filters: ['store'],
      flags: ['--test-name-pattern=lua', '--test-only', '--test-shard=1/2'],
    });
  });
});

test('tests on real nodes are for those who ask for end-to-end tests', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const onNodes = 'e2e/test/cluster/services.test.ts';
  assert.ok(selectTestFiles(root, { suite: 'e2e', filters: [] }).includes(onNodes));
  assert.deepEqual(selectTestFiles(root, { suite: 'all', filters: [onNodes] }), []);
});

test('what was left out is said once more just before the summary, which is last', async () => {
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
  const said = lines.indexOf('﹣ left out, since redis-server is missing');
  assert.match(lines[said + 1] ?? '', /tests 1$/);
  assert.ok(said > lines.findIndex((line) => line.includes('adds')));
  assert.equal(lines.lastIndexOf('﹣ left out, since redis-server is missing'), said);
});
