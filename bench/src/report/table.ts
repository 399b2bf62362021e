import type { Spread } from '../measure/statistics.ts';
import { type Result, type ScenarioResult, type Summary, summariesFor } from './result.ts';

const head = ['scenario', 'unit', 'subject', 'median', 'quartiles', 'user', '× HAProxy', 'quartiles', 'bar'];

/** Markdown that is also readable as it stands. */
export function tableFor({ at, commit, modified, machine, pairs, seconds, scenarios }: Result): string {
  const source = `${commit}${modified ? ' with changes' : ''}`;
  const caption = `${at.slice(0, 10)}, ${source}, ${machine}, ${pairs} rounds of ${seconds} s`;
  return [caption, '', ...aligned([head, ...scenarios.flatMap(rowsFor)])].join('\n');
}

function rowsFor(scenario: ScenarioResult): string[][] {
  return summariesFor(scenario).map((summary) => rowFor(summary, scenario));
}

function rowFor({ name, figure, userShare, ratio }: Summary, { name: scenario, unit, bar }: ScenarioResult): string[] {
  const compared = ratio === undefined ? ['', ''] : [ratio.median.toFixed(2), quartiles(ratio, 2)];
  const verdict = name === 'weir' ? `≤ ${bar.toFixed(1)}${ratio === undefined ? '' : judged(ratio.median, bar)}` : '';
  const user = `${(userShare * 100).toFixed(0)} %`;
  return [scenario, unit, name, figure.median.toFixed(1), quartiles(figure, 1), user, ...compared, verdict];
}

function judged(ratio: number, bar: number): string {
  return ratio <= bar ? ', met' : ', missed';
}

function quartiles({ lowerQuartile, upperQuartile }: Spread, digits: number): string {
  return `${lowerQuartile.toFixed(digits)}–${upperQuartile.toFixed(digits)}`;
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [first = [], ...others] = rows;
  return [line(first), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...others.map(line)];
}
