import { median } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown.ts';
import type { StartRow } from './start-result.ts';

/** Of a start, and of how long the main thread may be away. */
export const startBars = { services: 10_000, ms: 2_000, peakMiB: 400, waitMs: 50 } as const;

const head = [
  ...['Services here', 'entries', 'served after, ms', 'CPU, ms', 'queued, ms', 'MiB, highest', 'bar of the start'],
  ...['a scrape, ms', 'MB', 'longest wait in it, ms', 'at rest, ms', 'bar of the wait'],
];

export function startTable(rows: readonly StartRow[]): string[] {
  return markdownTable([head, ...rows.map(cells)]);
}

/** The bar is of a proxy that serves all of them; fewer where the machine does not let it. */
export function hasStartBar({ wanted }: Pick<StartRow, 'wanted'>): boolean {
  return wanted >= startBars.services;
}

function cells(row: StartRow): string[] {
  const { here, entries, starts, scrapes, restMs } = row;
  const serving = starts.map(({ servingMs }) => servingMs);
  const peakMiB = Math.max(...starts.map(({ peakKiB }) => peakKiB)) / 1_024;
  const waitMs = median(scrapes.map((each) => each.waitMs));
  const bar = [
    `≤ ${startBars.ms} ms, ${judged(median(serving), startBars.ms)}`,
    `≤ ${startBars.peakMiB} MiB, ${judged(peakMiB, startBars.peakMiB)}`,
  ];
  return [
    String(here),
    String(entries),
    `${whole(median(serving))} (${whole(Math.min(...serving))}–${whole(Math.max(...serving))})`,
    whole(median(starts.map(({ cpuMs }) => cpuMs))),
    whole(median(starts.map(({ queuedMs }) => queuedMs))),
    whole(peakMiB),
    hasStartBar(row) ? bar.join('; ') : '',
    whole(median(scrapes.map(({ ms }) => ms))),
    (median(scrapes.map(({ bytes }) => bytes)) / 1e6).toFixed(1),
    whole(waitMs),
    whole(restMs),
    `≤ ${startBars.waitMs} ms, ${judged(waitMs, startBars.waitMs)}`,
  ];
}

function judged(value: number, bar: number): string {
  return `${value <= bar ? 'met' : 'missed'} (${(value / bar).toFixed(2)} ×)`;
}

function whole(value: number): string {
  return value.toFixed(0);
}
