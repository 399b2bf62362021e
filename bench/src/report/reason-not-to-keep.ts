import type { SubjectName } from '../subjects/subject-name.ts';

export type Conditions = {
  readonly pairs: number;
  readonly subjects: readonly SubjectName[];
  /** Only some of the scenarios. */
  readonly only?: readonly string[];
  readonly profile?: string;
};

const fewestPairs = 10;

/** Why a run, valid in itself, is no result to be kept; undefined: it is one. */
export function reasonNotToKeep({ pairs, subjects, only, profile }: Conditions): string | undefined {
  if (profile !== undefined) return 'a process that is profiled is slower';
  if (pairs < fewestPairs) return `a result needs ${fewestPairs} pairs or more`;
  if (!subjects.includes('weir') || !subjects.includes('haproxy')) return 'a result needs weir and haproxy';
  if (only !== undefined) return 'a result needs all scenarios';
  return undefined;
}
