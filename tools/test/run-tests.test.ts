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

describe('the reporter', () => {
  test('prints skip reasons once, just before the final summary', async () => {
    const { code, lines } = await report({
      files: { 'small.test.ts': `import { test } from 'node:test'; test('adds', (t) => t.diagnostic('tests 1'));` },
      skipReasons: ['redis-server is missing'],
    });
    assert.equal(code, 0);
    assert.match(lines.at(-1) ?? '', /duration_ms/);
    const position = lines.indexOf('﹣ skipped tests: redis-server is missing');
    assert.match(lines[position + 1] ?? '', /tests 1$/);
    assert.ok(position > lines.findIndex((line) => line.includes('adds')));
    assert.equal(lines.lastIndexOf('﹣ skipped tests: redis-server is missing'), position);
  });

  test('repeats the last lines of the stderr of failed files, just before the final summary', async () => {
    const { code, lines } = await report({
      files: {
        'good.test.ts': `import { test } from 'node:test'; test('good', () => console.error('all is well'));`,
        'bad.test.ts': `import './imported.ts';`,
      },
      modules: {
        'imported.ts': `import { test } from 'node:test';
          test('bad', () => { for (let n = 1; n <= 200; n++) console.error('line ' + n); throw new Error('no'); });`,
      },
    });
    assert.equal(code, 1);
    const summary = lines.findIndex((line) => /tests 2$/.test(line));
    const heading = lines.findIndex((line) => /^✖ stderr of .*bad\.test\.ts:$/.test(line));
    assert.deepEqual(
      lines.slice(heading + 1, summary),
      Array.from({ length: 150 }, (_, index) => `line ${index + 51}`),
    );
    assert.ok(!lines.some((line) => /stderr of .*good/.test(line)));
  });
});

interface ReportOptions {
  /** The text of each test file by its name. */
  readonly files: Readonly<Record<string, string>>;
  /** The text of each file that the test files import. */
  readonly modules?: Readonly<Record<string, string>>;
  readonly skipReasons?: readonly string[];
}

/** Runs test files with the reporter. Returns the exit code and what the reporter printed. */
async function report({
  files,
  modules = {},
  skipReasons = [],
}: ReportOptions): Promise<{ code: number | null; lines: string[] }> {
  await using folder = temporaryDirectory('reporter');
  for (const [name, text] of Object.entries({ ...files, ...modules })) writeFileSync(join(folder.path, name), text);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const reporter = fileURLToPath(new URL('../src/test-runner/reporter.ts', import.meta.url));
  const runner = await spawnProcess({
    command: process.execPath,
    args: ['--test', `--test-reporter=${reporter}`, '--test-reporter-destination=stdout', ...Object.keys(files)],
    cwd: folder.path,
    env: { ...env, [SKIP_REASONS_VARIABLE]: JSON.stringify(skipReasons) },
    mayExit: true,
  });
  const { code } = await runner.exited;
  return { code, lines: runner.stdout().trimEnd().split('\n') };
}
