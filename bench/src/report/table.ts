import type { Quartiles } from '../measure/statistics.ts';
import type { SubjectName } from '../subjects/subject-name.ts';
import { markdownTable } from './markdown.ts';
import {
  type L4Result,
  referenceSubjectsFor,
  type ScenarioResult,
  type SubjectSummary,
  summariesFor,
} from './result.ts';

const SUBJECT_TITLES: Readonly<Partial<Record<SubjectName, string>>> = {
  haproxy: 'HAProxy',
  envoy: 'Envoy',
  weir: 'Weir',
};

/** Of each scenario one row per subject, with its ratio to each that others are compared with, and its quartiles. */
export function l4Table(result: L4Result): string {
  const { at, commit, modified, machine, pairs, seconds, scenarios, subjects, leftOut } = result;
  const source = `${commit}${modified ? ' with changes' : ''}`;
  const caption = `${at.slice(0, 10)}, ${source}, ${machine}, ${pairs} rounds of ${seconds} s`;
  const references = [...new Set(scenarios.flatMap(referenceSubjectsFor))];
  const head = [
    ...['scenario', 'unit', 'subject', 'median', 'quartiles', 'user'],
    ...references.map((name) => `× ${SUBJECT_TITLES[name] ?? name}`),
    'bar',
  ];
  const rows = scenarios.flatMap((scenario) =>
    summariesFor(scenario).map((summary) => rowFor(summary, { scenario, references })),
  );
  const notes = [
    ...subjects.map(({ name, description }) => `- ${name}: ${description}`),
    ...leftOut.map((note) => `- left out: ${note}`),
  ];
  return [caption, '', ...markdownTable([head, ...rows]), ...(notes.length > 0 ? ['', ...notes] : [])].join('\n');
}

function rowFor(
  summary: SubjectSummary,
  { scenario, references }: { readonly scenario: ScenarioResult; readonly references: readonly SubjectName[] },
): string[] {
  const { name, figure, userShare, ratios } = summary;
  const compared = references.map((reference) => {
    const ratio = ratios[reference];
    return ratio === undefined ? '' : `${ratio.median.toFixed(2)} (${formatQuartiles(ratio, 2)})`;
  });
  const user = Number.isNaN(userShare) ? '' : `${(userShare * 100).toFixed(0)} %`;
  const verdict = name === (scenario.judged ?? 'weir') ? formatVerdict(summary, scenario) : '';
  return [
    scenario.name,
    scenario.unit,
    name,
    figure.median.toFixed(1),
    formatQuartiles(figure, 1),
    user,
    ...compared,
    verdict,
  ];
}

function formatVerdict({ figure, ratios }: SubjectSummary, { bars, most }: ScenarioResult): string {
  const relative = (Object.entries(bars) as [SubjectName, number][]).map(([name, bar]) => {
    return `≤ ${formatTarget(bar)} × ${SUBJECT_TITLES[name] ?? name}${metOrMissed(ratios[name]?.median, bar)}`;
  });
  const absolute = most === undefined ? [] : [`≤ ${formatTarget(most)}${metOrMissed(figure.median, most)}`];
  return [...relative, ...absolute].join('; ');
}

function metOrMissed(value: number | undefined, bar: number): string {
  if (value === undefined) return '';
  return value <= bar ? ', met' : ', missed';
}

/** 1.0, 0.85, 16. */
function formatTarget(bar: number): string {
  return bar < 10 ? bar.toFixed(2).replace(/0$/, '') : String(bar);
}

function formatQuartiles({ lowerQuartile, upperQuartile }: Quartiles, digits: number): string {
  return `${lowerQuartile.toFixed(digits)}–${upperQuartile.toFixed(digits)}`;
}
