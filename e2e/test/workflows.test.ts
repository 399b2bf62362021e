import assert from 'node:assert/strict';
import { accessSync, constants, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly uses?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: { readonly node?: readonly string[] } };
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

const paths = globSync('.github/workflows/*.yml', { cwd: root });
const workflows = new Map(paths.map((path) => [path, parse(read(path)) as Workflow]));
const jobs = [...workflows].flatMap(([path, { jobs }]) =>
  Object.entries(jobs).map(([name, job]) => ({ place: `${path}: ${name}`, job, steps: job.steps ?? [] })),
);

describe('the workflows', () => {
  test('pin third-party actions by commit, with the version in a comment', () => {
    const lines = paths.flatMap((path) => read(path).split('\n')).filter((line) => /\buses: (?!\.\/)/.test(line));
    assert.ok(lines.length > 5);
    for (const line of lines) assert.match(line, /uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('have read permissions, and write permissions only in the publish job', () => {
    for (const [path, { permissions }] of workflows) assert.deepEqual(permissions, { contents: 'read' }, path);
    const writing = jobs.filter(({ job }) => job.permissions !== undefined).map(({ place }) => place);
    assert.deepEqual(writing, ['.github/workflows/release.yml: publish']);
    for (const { place, steps } of jobs)
      for (const { uses = '', with: given } of steps)
        if (uses.startsWith('actions/checkout@')) assert.equal(given?.['persist-credentials'], false, place);
  });

  test('have timeouts, and interpolate no expression into scripts', () => {
    for (const { place, job, steps } of jobs) {
      assert.ok(job.uses !== undefined || (job['timeout-minutes'] ?? 0) > 0, place);
      for (const { run = '' } of steps) assert.doesNotMatch(run, /\$\{\{/, place);
    }
  });

  test('call exactly the scripts of .ci', () => {
    const called = jobs.flatMap(({ steps }) => steps.flatMap(({ run = '' }) => run.match(/\.ci\/[\w-]+/g) ?? []));
    const scripts = readdirSync(join(root, '.ci')).map((name) => `.ci/${name}`);
    assert.deepEqual([...new Set(called)].sort(), scripts.sort());
    for (const script of scripts) accessSync(join(root, script), constants.X_OK);
  });

  test('run the compiled code on the oldest Node of package.json and on the pinned Node', () => {
    const tested = jobs.flatMap(({ job }) => job.strategy?.matrix.node ?? []);
    const { engines, devDependencies } = JSON.parse(read('package.json'));
    assert.ok(tested.includes(engines.node.replace('>=', '')), engines.node);
    assert.ok(tested.includes(devDependencies.node.replace(/^\^(\d+).*/, '$1')), devDependencies.node);
  });
});

test('dependabot watches each Go module with dependencies', () => {
  const { updates } = parse(read('.github/dependabot.yml')) as {
    updates: readonly { 'package-ecosystem': string; directories?: readonly string[] }[];
  };
  const watched = updates.filter((each) => each['package-ecosystem'] === 'gomod').flatMap((each) => each.directories);
  const modules = globSync('tools/go/*/go.mod', { cwd: root, exclude: ['**/node_modules'] });
  const withDependencies = modules.filter((path) => /^require\b/m.test(read(path)));
  assert.deepEqual(watched, withDependencies.map((path) => `/${dirname(path)}`).sort());
});
