import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SubjectName } from '../subjects/subject.ts';
import { REPOSITORY_ROOT } from './run-metadata.ts';

/** Into the file of that day and commit, under the benchmark's name, beside other benchmarks. Returns the path from the root. */
export function saveResult(benchmark: string, result: { readonly at: string; readonly commit: string }): string {
  const path = join('bench', 'results', `${result.at.slice(0, 10)}-${result.commit}.json`);
  const file = join(REPOSITORY_ROOT, path);
  mkdirSync(join(REPOSITORY_ROOT, 'bench', 'results'), { recursive: true });
  const others = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>) : {};
  writeFileSync(file, `${JSON.stringify({ ...others, [benchmark]: result }, null, 1)}\n`);
  return path;
}

export type RunConditions = {
  readonly pairs: number;
  readonly subjects: readonly SubjectName[];
  /** Only some of the scenarios. */
  readonly only?: readonly string[];
  readonly profile?: string;
};

const MIN_PAIRS = 10;

/** Why a run, valid in itself, is no result to be kept; undefined: it is one. */
export function reasonToDiscard({ pairs, subjects, only, profile }: RunConditions): string | undefined {
  if (profile !== undefined) return 'a process that is profiled is slower';
  if (pairs < MIN_PAIRS) return `a result needs ${MIN_PAIRS} pairs or more`;
  if (!subjects.includes('weir') || !subjects.includes('haproxy')) return 'a result needs weir and haproxy';
  if (only !== undefined) return 'a result needs all scenarios';
  return undefined;
}
