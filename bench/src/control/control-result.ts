import { median, type Summary, summarize, summarizeTail, type TailSummary } from '../measure/statistics.ts';
import { formatRange, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { ControllerStart } from './controller-process.ts';
import type { ChangeScenario } from './options.ts';

export type ControlResult = RunMetadata & {
  readonly rounds: number;
  readonly starts: readonly ControllerStartRow[];
  readonly changes: readonly ChangeRow[];
  /** Why the measurement of a cluster size ended early; the result keeps what was measured until then. */
  readonly failures: readonly string[];
};

/** What was measured of the start with one number of Services. */
export type ControllerStartReadings = {
  readonly services: number;
  /** Each controller started in a process of its own. */
  readonly controllers: readonly ControllerStart[];
  /** Time and bytes for one follower to read the complete table of an idle controller. */
  readonly followerMs: number;
  readonly followerBytes: number;
  /** Resident memory of the controller after all changes. */
  readonly afterKiB?: number;
};

export type ControllerStartRow = Omit<ControllerStartReadings, 'controllers'> & {
  readonly entries: number;
  readonly tableBytes: number;
  readonly startMs: Summary;
  readonly peakKiB: Summary;
  /** Median of the resident memory with all source objects, before the controller starts. */
  readonly objectsKiB: number;
};

export function summarizeControllerStart({ controllers, ...readings }: ControllerStartReadings): ControllerStartRow {
  return {
    ...readings,
    entries: controllers[0]?.entries ?? 0,
    tableBytes: median(controllers.map(({ bytes }) => bytes)),
    startMs: summarize(controllers.map(({ ms }) => ms)),
    peakKiB: summarize(controllers.map(({ peakKiB }) => peakKiB)),
    objectsKiB: median(controllers.map(({ objectsKiB }) => objectsKiB)),
  };
}

/** What was measured of the changes of one scenario. */
export type ChangeReadings = {
  readonly services: number;
  readonly followers: number;
  readonly scenario: ChangeScenario;
  readonly changes: readonly ChangeReading[];
  /** False if the run failed before the tables of the followers were compared with the controller's table. */
  readonly isVerified: boolean;
};

/** One change: milliseconds from the source until half of the followers, and all followers, have applied the change. */
export type ChangeReading = {
  readonly halfMs: number;
  readonly allMs: number;
  /** Bytes that the controller wrote. */
  readonly sentBytes: number;
  /** Bytes that each follower read. */
  readonly receivedBytes: number;
};

export type ChangeRow = Pick<ChangeReadings, 'services' | 'followers' | 'scenario'> & {
  readonly verified: boolean;
  readonly allMs: TailSummary;
  readonly halfMs: Summary;
  /** Medians. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
};

export function summarizeChanges({ changes, isVerified, ...readings }: ChangeReadings): ChangeRow {
  return {
    ...readings,
    verified: isVerified,
    allMs: summarizeTail(changes.map(({ allMs }) => allMs)),
    halfMs: summarize(changes.map(({ halfMs }) => halfMs)),
    sentBytes: median(changes.map(({ sentBytes }) => sentBytes)),
    receivedBytes: median(changes.map(({ receivedBytes }) => receivedBytes)),
  };
}

const START_TARGET = { services: 10_000, ms: 5_000, peakMiB: 600 } as const;
/** The targets of a change are for three proxies; more followers on one machine compete for its processors. */
export const TARGET_FOLLOWERS = 3;

const START_HEADER = [
  ...['Services', 'entries', 'controller start, ms', 'KiB to Redis', 'peak MiB', 'MiB before', 'MiB after'],
  ...['follower, ms', 'KiB from Redis', 'target'],
];

export function controllerStartTable(rows: readonly ControllerStartRow[]): string[] {
  return markdownTable([START_HEADER, ...rows.map(startCells)]);
}

/** The targets apply to the longest start and the highest peak of memory of all runs. */
function startCells(row: ControllerStartRow): string[] {
  const { services, entries, tableBytes, startMs, objectsKiB, afterKiB, followerMs, followerBytes } = row;
  const peakMiB = row.peakKiB.highest / 1024;
  const targets = [
    `≤ ${START_TARGET.ms} ms, ${metOrMissed(startMs.highest, START_TARGET.ms)}`,
    `≤ ${START_TARGET.peakMiB} MiB, ${metOrMissed(peakMiB, START_TARGET.peakMiB)}`,
  ];
  return [
    String(services),
    String(entries),
    formatRange(startMs),
    formatKiB(tableBytes),
    peakMiB.toFixed(0),
    (objectsKiB / 1024).toFixed(0),
    afterKiB === undefined ? '' : (afterKiB / 1024).toFixed(0),
    followerMs.toFixed(0),
    formatKiB(followerBytes),
    services === START_TARGET.services ? targets.join('; ') : '',
  ];
}

const CHANGE_HEADER = [
  ...['Services', 'followers', 'scenario', 'all: median, ms', 'all: p99, ms', 'half: median, ms'],
  ...['KiB to Redis', 'KiB to each follower', 'target'],
];

export function controlChangeTable(rows: readonly ChangeRow[]): string[] {
  return markdownTable([CHANGE_HEADER, ...rows.map(changeCells)]);
}

function changeCells(row: ChangeRow): string[] {
  const targetMs = changeTargetMs(row);
  return [
    String(row.services),
    String(row.followers),
    row.verified ? row.scenario : `${row.scenario} (not verified)`,
    row.allMs.median.toFixed(1),
    row.allMs.p99.toFixed(1),
    row.halfMs.median.toFixed(1),
    formatKiB(row.sentBytes),
    formatKiB(row.receivedBytes),
    targetMs === undefined ? '' : `≤ ${targetMs} ms, ${metOrMissed(row.allMs.p99, targetMs)}`,
  ];
}

/** Maximum of the 99th percentile; undefined if the row has no target. */
function changeTargetMs({ services, followers, scenario }: ChangeRow): number | undefined {
  if (followers !== TARGET_FOLLOWERS || scenario === 'rollout' || scenario === 'tenants') return undefined;
  return services <= 10 ? 30 : 60;
}

function metOrMissed(value: number, target: number): string {
  return value <= target ? 'met' : 'missed';
}

function formatKiB(bytes: number): string {
  const value = bytes / 1024;
  return value.toFixed(value < 100 ? 1 : 0);
}
