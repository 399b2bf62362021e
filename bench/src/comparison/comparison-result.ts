import { pairwiseRatios, type Summary, summarize } from '../measure/statistics.ts';
import { formatMedian, formatQuartiles, markdownTable } from '../report/markdown-table.ts';
import { formatHeadline, type RunMetadata } from '../report/run-metadata.ts';
import type { SubjectName } from '../subjects/subject.ts';

export type ComparisonResult = RunMetadata & {
  readonly rounds: number;
  readonly seconds: number;
  readonly subjects: readonly { readonly name: SubjectName; readonly description: string }[];
  readonly scenarios: readonly ScenarioSummary[];
  /** One text for each subject that was left out of one or all scenarios, with the reason. */
  readonly leftOut: readonly string[];
};

type ScenarioDescription = {
  readonly name: string;
  readonly unit: string;
  /** The subject to which `targets` and `maxFigure` apply; Weir if absent. */
  readonly judgedSubject?: SubjectName;
  /** Maximum ratio of the judged subject's figure to the figure of another subject, by the name of that subject. */
  readonly targets: TargetRatios;
  /** Maximum of the judged subject's figure, in `unit`. */
  readonly maxFigure?: number;
};

export type TargetRatios = Readonly<Partial<Record<SubjectName, number>>>;

/** All readings of one scenario. */
export type ScenarioReadings = ScenarioDescription & {
  /** Readings by subject. The readings with the same index belong to the same round. */
  readonly readings: Readonly<Partial<Record<SubjectName, readonly Reading[]>>>;
};

/** The summary of one scenario, as stored in a result. */
export type ScenarioSummary = ScenarioDescription & {
  readonly subjects: Readonly<Partial<Record<SubjectName, SubjectSummary>>>;
};

/** The reading of one subject in one round. `figure` is in the unit of the scenario. */
export type Reading = {
  readonly figure: number;
  /** CPU time that the subject's process used in the round, outside of the kernel; `systemMs`: in the kernel. */
  readonly userMs: number;
  readonly systemMs: number;
};

export type SubjectSummary = {
  readonly figure: Summary;
  /** Share of the CPU time, 0 to 1, that was spent outside of the kernel; null if no CPU time was used. */
  readonly userShare: number | null;
  /** Ratios of this subject's figures to the figures of a reference subject in the same rounds, by reference subject. */
  readonly ratios: Readonly<Partial<Record<SubjectName, Summary>>>;
};

/** Summarizes the readings. A ratio is computed in each round and then summarized, because the speed of the machine varies. */
export function summarizeScenario({ readings, ...description }: ScenarioReadings): ScenarioSummary {
  const names = (Object.keys(readings) as SubjectName[]).filter((name) => figures(readings[name]).length > 0);
  const references = referenceSubjects(description.targets).filter((name) => names.includes(name));
  const subjects = names.map((name): [SubjectName, SubjectSummary] => {
    const ratios = references
      .filter((reference) => reference !== name)
      .map((reference) => [
        reference,
        summarize(pairwiseRatios(figures(readings[name]), figures(readings[reference]))),
      ]);
    const summary = {
      figure: summarize(figures(readings[name])),
      userShare: userShareOf(readings[name]),
      ratios: Object.fromEntries(ratios),
    };
    return [name, summary];
  });
  return { ...description, subjects: Object.fromEntries(subjects) };
}

/** Returns the subjects with which every subject is compared: HAProxy, Envoy and every subject that a target names. */
function referenceSubjects(targets: TargetRatios): SubjectName[] {
  return [...new Set<SubjectName>(['haproxy', 'envoy', ...(Object.keys(targets) as SubjectName[])])];
}

function figures(readings: readonly Reading[] = []): number[] {
  return readings.map(({ figure }) => figure);
}

function userShareOf(readings: readonly Reading[] = []): number | null {
  const userMs = readings.reduce((sum, reading) => sum + reading.userMs, 0);
  const systemMs = readings.reduce((sum, reading) => sum + reading.systemMs, 0);
  return userMs + systemMs === 0 ? null : userMs / (userMs + systemMs);
}

const SUBJECT_TITLES: Readonly<Partial<Record<SubjectName, string>>> = {
  haproxy: 'HAProxy',
  envoy: 'Envoy',
  weir: 'Weir',
};

/** Formats a table with one row for each scenario and subject. Each reference subject has a column with the ratio to that subject. */
export function formatComparison(result: ComparisonResult): string {
  const { rounds, seconds, scenarios, subjects, leftOut } = result;
  const references = referencesIn(scenarios);
  const header = [
    ...['scenario', 'unit', 'subject', 'median', 'quartiles', 'user'],
    ...references.map((name) => `× ${SUBJECT_TITLES[name] ?? name}`),
    'target',
  ];
  const rows = scenarios.flatMap((scenario) =>
    Object.entries(scenario.subjects).map(([name, summary]) =>
      subjectCells({ scenario, name: name as SubjectName, summary, references }),
    ),
  );
  const notes = [
    ...subjects.map(({ name, description }) => `- ${name}: ${description}`),
    ...leftOut.map((note) => `- left out: ${note}`),
  ];
  return [
    formatHeadline(result, `${rounds} rounds of ${seconds} s`),
    '',
    ...markdownTable([header, ...rows]),
    ...(notes.length > 0 ? ['', ...notes] : []),
  ].join('\n');
}

function referencesIn(scenarios: readonly ScenarioSummary[]): SubjectName[] {
  const isReference = (name: SubjectName): boolean =>
    scenarios.some(({ subjects }) => Object.values(subjects).some(({ ratios }) => ratios[name] !== undefined));
  return [...new Set(scenarios.flatMap(({ targets }) => referenceSubjects(targets)))].filter(isReference);
}

function subjectCells({
  scenario,
  name,
  summary,
  references,
}: {
  readonly scenario: ScenarioSummary;
  readonly name: SubjectName;
  readonly summary: SubjectSummary;
  readonly references: readonly SubjectName[];
}): string[] {
  const { figure, userShare, ratios } = summary;
  return [
    scenario.name,
    scenario.unit,
    name,
    figure.median.toFixed(1),
    formatQuartiles(figure, 1),
    userShare === null ? '' : `${(userShare * 100).toFixed(0)} %`,
    ...references.map((reference) => (ratios[reference] === undefined ? '' : formatMedian(ratios[reference], 2))),
    name === (scenario.judgedSubject ?? 'weir') ? formatTargets(summary, scenario) : '',
  ];
}

function formatTargets({ figure, ratios }: SubjectSummary, { targets, maxFigure }: ScenarioSummary): string {
  const relative = (Object.entries(targets) as [SubjectName, number][]).map(([name, target]) => {
    const met = metOrMissed(ratios[name]?.median, target);
    return `≤ ${formatNumber(target)} × ${SUBJECT_TITLES[name] ?? name}${met}`;
  });
  const absolute =
    maxFigure === undefined ? [] : [`≤ ${formatNumber(maxFigure)}${metOrMissed(figure.median, maxFigure)}`];
  return [...relative, ...absolute].join('; ');
}

function metOrMissed(value: number | undefined, target: number): string {
  if (value === undefined) return '';
  return value <= target ? ', met' : ', missed';
}

/** Formats a target with as many digits as the target needs, for example 1.0, 0.85 or 16. */
function formatNumber(target: number): string {
  return target < 10 ? target.toFixed(2).replace(/0$/, '') : String(target);
}
