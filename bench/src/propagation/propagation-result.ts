import type { RunMetadata } from '../report/run-facts.ts';
import type { PropagationSource } from './source-name.ts';

export type PropagationResult = RunMetadata & {
  readonly rows: readonly PropagationRow[];
};

export type PropagationRow = {
  readonly source: PropagationSource;
  readonly services: number;
  readonly changes: readonly PropagationReading[];
  /** Of the first kinds of it, in words. */
  readonly wrong: readonly string[];
  /** What the proxies themselves observed: changes of all of them together, and their mean. */
  readonly observed: { readonly count: number; readonly meanMs: number };
};

/** Of one change: milliseconds from the write to the first right answer of each proxy, ascending. */
export type PropagationReading = { readonly ms: readonly number[]; readonly answers: number; readonly wrong: number };
