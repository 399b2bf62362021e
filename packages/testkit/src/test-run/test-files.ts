import { globSync } from 'node:fs';
import { normalize } from 'node:path';

const UNIT_TESTS = ['packages/*/test/**/*.test.ts', 'bench/test/**/*.test.ts'];
const END_TO_END_TESTS = ['e2e/test/**/*.test.ts'];
/** Want root and programs that take minutes to build: for those who ask for them. */
const REAL_NODE_TESTS = 'e2e/test/cluster/';

/** Relative to the root. The end-to-end tests come first: they take longest, and the others fill the gaps. */
export function selectTestFiles(
  root: string,
  { suite, filters }: { suite: 'all' | 'e2e'; filters: readonly string[] },
): string[] {
  const patterns = suite === 'e2e' ? END_TO_END_TESTS : [...END_TO_END_TESTS, ...UNIT_TESTS];
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: root }).sort());
  const wanted = filters.map((filter) => normalize(filter));
  return files
    .filter((file) => suite === 'e2e' || !file.startsWith(REAL_NODE_TESTS))
    .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
}
