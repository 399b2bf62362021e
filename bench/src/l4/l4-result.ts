import { pairwiseRatios, type Quartiles, quartilesOf } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown-table.ts';
import type { SubjectName } from '../subjects/subject.ts';

export type L4Result = {
  readonly at: string;
  readonly commit: string;
  /** The sources of the commit were changed. */
  readonly modified: boolean;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly pairs: number;
  readonly seconds: number;
  readonly subjects: readonly { readonly name: SubjectName; readonly description: string }[];
  readonly scenarios: readonly ScenarioResult[];
  /** Who was left out of what, and why, in words. */
  readonly leftOut: readonly string[];
};

export type ScenarioResult = {
  readonly name: string;
  readonly unit: string;
  /** Whose figure has the bars; Weir's unless said. */
  readonly judged?: SubjectName;
  /** How many times HAProxy's figure it may be; the same as in `bars`, and all that results had until 21 November 2026. */
  readonly bar?: number;
  /** How many times the figure of each of these it may be. */
  readonly bars: TargetRatios;
  /** How much it may be. */
  readonly most?: number;
  /** By subject; the nth of each ran in the same round. */
  readonly readings: Readonly<Partial<Record<SubjectName, readonly L4Reading[]>>>;
};

export type TargetRatios = Readonly<Partial<Record<SubjectName, number>>>;

/** One turn. `count`: requests, connections or bytes in `ms`; `userMs`, `systemMs`: the proxy's CPU time for them. */
export type L4Reading = {
  readonly figure: number;
  readonly userMs: number;
  readonly systemMs: number;
  readonly count: number;
  readonly ms: number;
};

export type SubjectSummary = {
  readonly name: SubjectName;
  readonly figure: Quartiles;
  /** How much of the CPU time is spent outside of the kernel, 0 to 1. */
  readonly userShare: number;
  /** To the figures of each reference in the same rounds. */
  readonly ratios: Readonly<Partial<Record<SubjectName, Quartiles>>>;
};

/** Whom the others are compared with: HAProxy and Envoy, and whoever a bar names; as far as they ran. */
export function referenceSubjectsFor({ bars, readings }: Pick<ScenarioResult, 'bars' | 'readings'>): SubjectName[] {
  const names = new Set<SubjectName>(['haproxy', 'envoy', ...(Object.keys(bars) as SubjectName[])]);
  return [...names].filter((name) => (readings[name] ?? []).length > 0);
}

/** One per subject: its figures, and their ratios. */
export function summariesFor({ bars, readings }: Pick<ScenarioResult, 'bars' | 'readings'>): SubjectSummary[] {
  const references = referenceSubjectsFor({ bars, readings });
  return (Object.keys(readings) as SubjectName[]).map((name) => {
    const own = figures(readings[name]);
    const others = references.filter((reference) => reference !== name);
    return {
      name,
      figure: quartilesOf(own),
      userShare: userShareOf(readings[name]),
      ratios: Object.fromEntries(
        others.map((other) => [other, quartilesOf(pairwiseRatios(own, figures(readings[other])))]),
      ),
    };
  });
}

function figures(readings: readonly L4Reading[] = []): number[] {
  return readings.map(({ figure }) => figure);
}

function userShareOf(readings: readonly L4Reading[] = []): number {
  const user = readings.reduce((sum, { userMs }) => sum + userMs, 0);
  const system = readings.reduce((sum, { systemMs }) => sum + systemMs, 0);
  return user / (user + system);
}

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
