import { median, percentile } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown.ts';
import { changeBar, hasStartBar, startBar } from './bars.ts';
import type { ChangeRow, StartRow } from './control-result.ts';

const startHead = [
  ...['Services', 'entries', 'controller, ms', 'KiB to Redis', 'MiB, highest', 'before the start', 'at the end'],
  ...['a follower, ms', 'KiB from Redis', 'bar'],
];

export function startTable(rows: readonly StartRow[]): string[] {
  return markdownTable([startHead, ...rows.map(startCells)]);
}

function startCells(row: StartRow): string[] {
  const { services, controllers, followerMs, followerBytes, afterKiB } = row;
  const of = (pick: (started: StartRow['controllers'][number]) => number): number[] => controllers.map(pick);
  const ms = of((each) => each.ms);
  const peakMiB = Math.max(...of((each) => each.peakKiB)) / 1024;
  const verdict = [
    `≤ ${startBar.ms} ms, ${judged(Math.max(...ms), startBar.ms)}`,
    `≤ ${startBar.peakMiB} MiB, ${judged(peakMiB, startBar.peakMiB)}`,
  ];
  return [
    String(services),
    String(controllers[0]?.entries),
    `${whole(median(ms))} (${whole(Math.min(...ms))}–${whole(Math.max(...ms))})`,
    kib(median(of((each) => each.bytes))),
    whole(peakMiB),
    whole(median(of((each) => each.objectsKiB)) / 1024),
    afterKiB === undefined ? '' : whole(afterKiB / 1024),
    whole(followerMs),
    kib(followerBytes),
    hasStartBar(row) ? verdict.join('; ') : '',
  ];
}

const changeHead = [
  ...['Services', 'followers', 'scenario', 'all: median, ms', 'all: p99, ms', 'half: median, ms'],
  ...['KiB to Redis', 'KiB to each follower', 'bar'],
];

export function changeTable(rows: readonly ChangeRow[]): string[] {
  return markdownTable([changeHead, ...rows.map(changeCells)]);
}

function changeCells(row: ChangeRow): string[] {
  const of = (pick: (reading: ChangeRow['changes'][number]) => number): number[] => row.changes.map(pick);
  const p99 = percentile(
    of(({ allMs }) => allMs),
    0.99,
  );
  const bar = changeBar(row);
  return [
    String(row.services),
    String(row.followers),
    row.isProved ? row.scenario : `${row.scenario} (not proved)`,
    median(of(({ allMs }) => allMs)).toFixed(1),
    p99.toFixed(1),
    median(of(({ halfMs }) => halfMs)).toFixed(1),
    kib(median(of(({ sentBytes }) => sentBytes))),
    kib(median(of(({ receivedBytes }) => receivedBytes))),
    bar === undefined ? '' : `≤ ${bar} ms, ${judged(p99, bar)}`,
  ];
}

function judged(value: number, bar: number): string {
  return value <= bar ? 'met' : 'missed';
}

function whole(value: number): string {
  return value.toFixed(0);
}

function kib(bytes: number): string {
  const value = bytes / 1024;
  return value.toFixed(value < 100 ? 1 : 0);
}
