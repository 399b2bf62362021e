import { median, percentile } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown.ts';
import { changeTargetMs, hasControlStartTarget, START_TARGET } from './bars.ts';
import type { ChangeRow, ControllerStartRow } from './control-result.ts';

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
