import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComparisonResult } from '../comparison/comparison-result.ts';
import type { ControlResult } from '../control/control-result.ts';
import type { CutoffResult } from '../cutoff/cutoff-result.ts';
import type { FairnessResult } from '../fairness/fairness-result.ts';
import type { HostileResult } from '../hostile/hostile-result.ts';
import type { LeasesResult } from '../leases/benchmark.ts';
import type { LimitsResult } from '../limits/limits-result.ts';
import type { PropagationResult } from '../propagation/propagation-result.ts';
import type { StartResult } from '../start/start-result.ts';
import type { SubjectName } from '../subjects/subject.ts';
import { REPOSITORY_ROOT } from './run-metadata.ts';

/** Content of a result file: summaries by benchmark, without the single readings. */
type ResultFile = {
  readonly l4?: ComparisonResult;
  readonly l7?: ComparisonResult;
  readonly cost?: ComparisonResult;
  readonly fairness?: FairnessResult;
  readonly hostile?: HostileResult;
  readonly control?: ControlResult;
  readonly propagation?: PropagationResult;
  readonly cutoff?: CutoffResult;
  readonly limits?: LimitsResult;
  readonly leases?: LeasesResult;
  readonly start?: StartResult;
};

export type SaveOptions = {
  /** The reason for not saving the result; undefined if the result may be saved. */
  readonly reasonToDiscard: string | undefined;
};

/** Saves the result in `bench/results/<date>-<commit>.json` and prints the path. Given a `reasonToDiscard`, only prints the reason. */
export function saveOrExplain<Name extends keyof ResultFile>(
  benchmark: Name,
  result: Required<ResultFile>[Name],
  { reasonToDiscard: reason }: SaveOptions,
): void {
  if (reason !== undefined) {
    console.log(`\nnot written: ${reason}`);
    return;
  }
  const path = join('bench', 'results', `${result.at.slice(0, 10)}-${result.commit}.json`);
  const file = join(REPOSITORY_ROOT, path);
  mkdirSync(join(REPOSITORY_ROOT, 'bench', 'results'), { recursive: true });
  const otherBenchmarks = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ResultFile) : {};
  writeFileSync(file, formatResultFile({ ...otherBenchmarks, [benchmark]: result }));
  console.log(`\nwritten to ${path}`);
}

const MAX_LINE_LENGTH = 480;
const SIGNIFICANT_DIGITS = 6;

/** Formats a result file as JSON. A value that fits into `MAX_LINE_LENGTH` is on one line; a longer value has one line per member. */
export function formatResultFile(file: ResultFile): string {
  return `${formatJson(file, '')}\n`;
}

function formatJson(value: unknown, indent: string): string {
  const line = JSON.stringify(value, (_, member: unknown) => (typeof member === 'number' ? rounded(member) : member));
  if (line.length <= MAX_LINE_LENGTH || typeof value !== 'object' || value === null) return line;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => `${inner}${formatJson(item, inner)}`).join(',\n')}\n${indent}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const lines = members.map(([key, member]) => `${inner}${JSON.stringify(key)}: ${formatJson(member, inner)}`);
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(SIGNIFICANT_DIGITS));
}

export const PROFILED_RUN = 'profiling slows processes down';
const MIN_ROUNDS = 10;

export type ComparisonConditions = {
  readonly rounds: number;
  readonly subjects: readonly SubjectName[];
  /** The selected scenarios; absent if all scenarios ran. */
  readonly scenarios?: readonly string[];
  readonly profileDirectory?: string;
};

/** Returns the reason for not saving a valid run of `l4`, `l7` or `fairness`; undefined if the run may be saved. */
export function reasonToDiscardComparison({
  rounds,
  subjects,
  scenarios,
  profileDirectory,
}: ComparisonConditions): string | undefined {
  if (profileDirectory !== undefined) return PROFILED_RUN;
  if (rounds < MIN_ROUNDS) return `a result needs ${MIN_ROUNDS} rounds or more`;
  if (!subjects.includes('weir') || !subjects.includes('haproxy')) return 'a result needs weir and haproxy';
  if (scenarios !== undefined) return 'a result needs all scenarios';
  return undefined;
}
