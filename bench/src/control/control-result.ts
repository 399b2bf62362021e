import { median, percentile } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { ControllerStart } from './controller-process.ts';
import type { ChangeScenario } from './options.ts';

export type ControlResult = RunMetadata & {
  readonly rounds: number;
  readonly starts: readonly ControllerStartRow[];
  readonly changes: readonly ChangeRow[];
  /** What ended a size before its time, in words; what was measured until then is kept. */
  readonly failures: readonly string[];
};

export type ControllerStartRow = {
  readonly services: number;
  /** Each in a process of its own. */
  readonly controllers: readonly ControllerStart[];
  /** Of one follower that reads the whole table, while nothing else goes on. */
  readonly followerMs: number;
  readonly followerBytes: number;
  /** Resident, of the controller, after all changes. */
  readonly afterKiB?: number;
};

export type ChangeRow = {
  readonly services: number;
  readonly followers: number;
  readonly scenario: ChangeScenario;
  readonly changes: readonly ControlChangeReading[];
  /** False: the run failed before the followers could be held against what the controller has decided. */
  readonly isProved: boolean;
};

/** Of one change: milliseconds from the source until half of the followers have applied it, and until all have. */
export type ControlChangeReading = {
  readonly halfMs: number;
  readonly allMs: number;
  /** Written by the controller, and read by each follower. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
};

export const START_TARGET = { services: 10_000, ms: 5_000, peakMiB: 600 } as const;
/** The bars of a change are those of three proxies; more of them on one machine take the CPU time from each other. */
export const TARGET_FOLLOWERS = 3;

/** The most that the 99th percentile may be; undefined: nothing was promised. */
export function changeTargetMs({
  services,
  followers,
  scenario,
}: Pick<ChangeRow, 'services' | 'followers' | 'scenario'>): number | undefined {
  if (followers !== TARGET_FOLLOWERS || scenario === 'rollout' || scenario === 'tenants') return undefined;
  return services <= 10 ? 30 : 60;
}

export function hasControlStartTarget({ services }: Pick<ControllerStartRow, 'services'>): boolean {
  return services === START_TARGET.services;
}

const START_HEADER = [
  ...['Services', 'entries', 'controller, ms', 'KiB to Redis', 'MiB, highest', 'before the start', 'at the end'],
  ...['a follower, ms', 'KiB from Redis', 'bar'],
];

export function controllerStartTable(rows: readonly ControllerStartRow[]): string[] {
  return markdownTable([START_HEADER, ...rows.map(startCells)]);
}

function startCells(row: ControllerStartRow): string[] {
  const { services, controllers, followerMs, followerBytes, afterKiB } = row;
  const of = (pick: (started: ControllerStartRow['controllers'][number]) => number): number[] => controllers.map(pick);
  const ms = of((each) => each.ms);
  const peakMiB = Math.max(...of((each) => each.peakKiB)) / 1024;
  const verdict = [
    `≤ ${START_TARGET.ms} ms, ${metOrMissed(Math.max(...ms), START_TARGET.ms)}`,
    `≤ ${START_TARGET.peakMiB} MiB, ${metOrMissed(peakMiB, START_TARGET.peakMiB)}`,
  ];
  return [
    String(services),
    String(controllers[0]?.entries),
    `${formatInteger(median(ms))} (${formatInteger(Math.min(...ms))}–${formatInteger(Math.max(...ms))})`,
    formatKiB(median(of((each) => each.bytes))),
    formatInteger(peakMiB),
    formatInteger(median(of((each) => each.objectsKiB)) / 1024),
    afterKiB === undefined ? '' : formatInteger(afterKiB / 1024),
    formatInteger(followerMs),
    formatKiB(followerBytes),
    hasControlStartTarget(row) ? verdict.join('; ') : '',
  ];
}

const CHANGE_HEADER = [
  ...['Services', 'followers', 'scenario', 'all: median, ms', 'all: p99, ms', 'half: median, ms'],
  ...['KiB to Redis', 'KiB to each follower', 'bar'],
];

export function controlChangeTable(rows: readonly ChangeRow[]): string[] {
  return markdownTable([CHANGE_HEADER, ...rows.map(changeCells)]);
}

function changeCells(row: ChangeRow): string[] {
  const of = (pick: (reading: ChangeRow['changes'][number]) => number): number[] => row.changes.map(pick);
  const p99 = percentile(
    of(({ allMs }) => allMs),
    0.99,
  );
  const bar = changeTargetMs(row);
  return [
    String(row.services),
    String(row.followers),
    row.isProved ? row.scenario : `${row.scenario} (not proved)`,
    median(of(({ allMs }) => allMs)).toFixed(1),
    p99.toFixed(1),
    median(of(({ halfMs }) => halfMs)).toFixed(1),
    formatKiB(median(of(({ sentBytes }) => sentBytes))),
    formatKiB(median(of(({ receivedBytes }) => receivedBytes))),
    bar === undefined ? '' : `≤ ${bar} ms, ${metOrMissed(p99, bar)}`,
  ];
}

function metOrMissed(value: number, bar: number): string {
  return value <= bar ? 'met' : 'missed';
}

function formatInteger(value: number): string {
  return value.toFixed(0);
}

function formatKiB(bytes: number): string {
  const value = bytes / 1024;
  return value.toFixed(value < 100 ? 1 : 0);
}
