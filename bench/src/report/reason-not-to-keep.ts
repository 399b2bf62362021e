import type { SubjectName } from '../subjects/subject-name.ts';

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
