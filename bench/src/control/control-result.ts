import { median, type Summary, summarize, summarizeTail, type TailSummary } from '../measure/statistics.ts';
import { formatRange, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { ControllerStart } from './controller-process.ts';
import type { ChangeScenario } from './options.ts';

export type ControlResult = RunMetadata & {
  readonly rounds: number;
  readonly starts: readonly ControllerStartRow[];
  readonly changes: readonly ChangeRow[];
  /** The errors that ended measurements early, at most one for each cluster size. Earlier readings stay in the result. */
  readonly failures: readonly string[];
};

/** The readings from starting the controller with one number of Services. */
export type ControllerStartReadings = {
  readonly services: number;
  /** One item for each start of the controller, each in a new process. */
  readonly controllers: readonly ControllerStart[];
  /** Time until a new follower has the complete table while the controller is idle. The follower receives `followerBytes` from Redis. */
  readonly followerMs: number;
  readonly followerBytes: number;
  /** Resident memory of the controller after all changes; absent if a change failed. */
  readonly afterKiB?: number;
};

export type ControllerStartRow = Omit<ControllerStartReadings, 'controllers'> & {
  readonly entries: number;
  readonly tableBytes: number;
  readonly startMs: Summary;
  readonly peakKiB: Summary;
  /** Median of the resident memory before the controller starts, when the process already holds all source objects. */
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

/** The readings of all changes of one scenario. */
export type ChangeReadings = {
  readonly services: number;
  readonly followers: number;
  readonly scenario: ChangeScenario;
  readonly changes: readonly ChangeReading[];
  /** False if the run failed before the tables of the followers were compared with the controller's table. */
  readonly isVerified: boolean;
};

/** One change. Times are milliseconds from the change of the source until half of the followers, or all followers, have applied it. */
export type ChangeReading = {
  readonly halfMs: number;
  readonly allMs: number;
  /** Bytes that the controller sent to Redis. */
  readonly sentBytes: number;
  /** Bytes that each follower received from Redis. */
  readonly receivedBytes: number;
};

export type ChangeRow = Pick<ChangeReadings, 'services' | 'followers' | 'scenario'> & {
  readonly verified: boolean;
  readonly allMs: TailSummary;
  readonly halfMs: Summary;
  /** `sentBytes` and `receivedBytes` are medians of all changes. */
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
/** Only rows with this number of followers have a target, because more followers would compete for the processors of the machine. */
export const TARGET_FOLLOWERS = 3;

const START_HEADER = [
  ...['Services', 'entries', 'controller start, ms', 'KiB to Redis', 'peak MiB', 'MiB before', 'MiB after'],
  ...['follower, ms', 'KiB from Redis', 'target'],
];

export function controllerStartTable(rows: readonly ControllerStartRow[]): string[] {
  return markdownTable([START_HEADER, ...rows.map(startCells)]);
}

/** Formats one row. The targets apply to the slowest start and to the highest memory peak of any start. */
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

/** Returns the highest permitted 99th percentile of `allMs`; undefined if the row has no target. */
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
