import { globSync } from 'node:fs';
import { normalize } from 'node:path';

const unit = ['packages/*/test/**/*.test.ts', 'bench/test/**/*.test.ts'];
const endToEnd = ['e2e/test/**/*.test.ts'];
/** Want root and programs that take minutes to build: for those who ask for them. */
const withRealNodes = 'e2e/test/cluster/';

/** Relative to the root. The end-to-end tests come first: they take longest, and the others fill the gaps. */
export function testFiles(
  root: string,
  { suite, filters }: { suite: 'all' | 'e2e'; filters: readonly string[] },
): string[] {
  const patterns = suite === 'e2e' ? endToEnd : [...endToEnd, ...unit];
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: root }).sort());
  const wanted = filters.map((filter) => normalize(filter));
  return files
    .filter((file) => suite === 'e2e' || !file.startsWith(withRealNodes))
    .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
}
