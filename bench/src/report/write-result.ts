import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY_ROOT } from './work-tree.ts';

/** Into the file of that day and commit, under the benchmark's name, beside other benchmarks. Returns the path from the root. */
export function saveResult(benchmark: string, result: { readonly at: string; readonly commit: string }): string {
  const path = join('bench', 'results', `${result.at.slice(0, 10)}-${result.commit}.json`);
  const file = join(REPOSITORY_ROOT, path);
  mkdirSync(join(REPOSITORY_ROOT, 'bench', 'results'), { recursive: true });
  const others = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>) : {};
  writeFileSync(file, `${JSON.stringify({ ...others, [benchmark]: result }, null, 1)}\n`);
  return path;
}
