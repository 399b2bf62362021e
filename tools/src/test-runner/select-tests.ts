import { globSync } from 'node:fs';
import { normalize } from 'node:path';

export type TestSelection = {
  readonly suite: 'all' | 'e2e';
  /** Selects the test files whose path contains one of these words. */
  readonly filters: readonly string[];
  /** Flags for node --test. */
  readonly flags: readonly string[];
};

/** Flags of node --test that have a value, which may be the next argument. */
const FLAGS_WITH_VALUE: ReadonlySet<string> = new Set([
  '--test-name-pattern',
  '--test-skip-pattern',
  '--test-concurrency',
  '--test-reporter',
  '--test-reporter-destination',
  '--test-shard',
  '--test-timeout',
]);

export function parseTestArguments(args: readonly string[]): TestSelection {
  const [first, ...rest] = args;
  const filters: string[] = [];
  const flags: string[] = [];
  const queue = first === 'e2e' ? rest : [...args];
  for (let argument = queue.shift(); argument !== undefined; argument = queue.shift()) {
    if (!argument.startsWith('-')) filters.push(argument);
    else if (FLAGS_WITH_VALUE.has(argument) && queue.length > 0) flags.push(`${argument}=${queue.shift()}`);
    else flags.push(argument);
  }
  return { suite: first === 'e2e' ? 'e2e' : 'all', filters, flags };
}

const UNIT_TESTS = ['packages/*/test/**/*.test.ts', 'tools/test/**/*.test.ts', 'bench/test/**/*.test.ts'];
const END_TO_END_TESTS = ['e2e/test/**/*.test.ts'];
/**
 * Folders of tests that only `npm run e2e` runs. The tests on real nodes need root and programs that take minutes to build; the fault
 * suite runs for half an hour.
 */
const FOLDERS_OF_E2E = ['e2e/test/cluster/', 'e2e/test/faults/'];

/** Returns the paths of the selected tests. The end-to-end tests are first, because they take longest and should not start last. */
export function selectTestFiles(
  root: string,
  { suite, filters }: { suite: 'all' | 'e2e'; filters: readonly string[] },
): string[] {
  const patterns = suite === 'e2e' ? END_TO_END_TESTS : [...END_TO_END_TESTS, ...UNIT_TESTS];
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: root }).sort());
  const wanted = filters.map((filter) => normalize(filter));
  return files
    .filter((file) => suite === 'e2e' || !FOLDERS_OF_E2E.some((folder) => file.startsWith(folder)))
    .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
}
