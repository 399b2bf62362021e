import { median } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';

export type StartResult = RunMetadata & {
  readonly services: number;
  readonly workers: number;
  readonly rows: readonly ProxyStartRow[];
};

export type ProxyStartRow = {
  /** Of the table. */
  readonly entries: number;
  /** Services of the node, each with one listener. */
  readonly here: number;
  /** As many were asked for; fewer: this machine has not the descriptors. */
  readonly wanted: number;
  /** Each of a process of its own. */
  readonly starts: readonly ProxyStartReading[];
  /** Of the last of them, at rest. */
  readonly scrapes: readonly ScrapeReading[];
  /** The longest that somebody waited for its main thread, in milliseconds, while nothing but heartbeats went on. */
  readonly restMs: number;
};

export type ProxyStartReading = {
  /** From the start of the process until each listener is open at all workers. */
  readonly servingMs: number;
  /** CPU time of all threads until then. */
  readonly cpuMs: number;
  /** How long its main thread was ready to run until then and had no processor: it has no time to lose. */
  readonly queuedMs: number;
  readonly peakKiB: number;
};

export type ScrapeReading = {
  readonly ms: number;
  readonly bytes: number;
  /** The longest that somebody else waited for the main thread meanwhile. */
  readonly waitMs: number;
};

/** Of a start, and of how long the main thread may be away. */
export const START_TARGETS = { services: 10_000, ms: 2_000, peakMiB: 400, waitMs: 50 } as const;

const HEADER = [
  ...['Services here', 'entries', 'served after, ms', 'CPU, ms', 'queued, ms', 'MiB, highest', 'bar of the start'],
  ...['a scrape, ms', 'MB', 'longest wait in it, ms', 'at rest, ms', 'bar of the wait'],
];

export function proxyStartTable(rows: readonly ProxyStartRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(startCells)]);
}

/** The bar is of a proxy that serves all of them; fewer where the machine does not let it. */
export function hasProxyStartTarget({ wanted }: Pick<ProxyStartRow, 'wanted'>): boolean {
  return wanted >= START_TARGETS.services;
}

function startCells(row: ProxyStartRow): string[] {
  const { here, entries, starts, scrapes, restMs } = row;
  const serving = starts.map(({ servingMs }) => servingMs);
  const peakMiB = Math.max(...starts.map(({ peakKiB }) => peakKiB)) / 1_024;
  const waitMs = median(scrapes.map((each) => each.waitMs));
  const bar = [
    `≤ ${START_TARGETS.ms} ms, ${formatVerdict(median(serving), START_TARGETS.ms)}`,
    `≤ ${START_TARGETS.peakMiB} MiB, ${formatVerdict(peakMiB, START_TARGETS.peakMiB)}`,
  ];
  return [
    String(here),
    String(entries),
    `${formatInteger(median(serving))} (${formatInteger(Math.min(...serving))}–${formatInteger(Math.max(...serving))})`,
    formatInteger(median(starts.map(({ cpuMs }) => cpuMs))),
    formatInteger(median(starts.map(({ queuedMs }) => queuedMs))),
    formatInteger(peakMiB),
    hasProxyStartTarget(row) ? bar.join('; ') : '',
    formatInteger(median(scrapes.map(({ ms }) => ms))),
    (median(scrapes.map(({ bytes }) => bytes)) / 1e6).toFixed(1),
    formatInteger(waitMs),
    formatInteger(restMs),
    `≤ ${START_TARGETS.waitMs} ms, ${formatVerdict(waitMs, START_TARGETS.waitMs)}`,
  ];
}

function formatVerdict(value: number, bar: number): string {
  return `${value <= bar ? 'met' : 'missed'} (${(value / bar).toFixed(2)} ×)`;
}

function formatInteger(value: number): string {
  return value.toFixed(0);
}
