import { type Summary, summarize } from '../measure/statistics.ts';
import { formatRange, formatTarget, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';

export type StartResult = RunMetadata & {
  readonly services: number;
  readonly workers: number;
  readonly rows: readonly ProxyStartRow[];
};

type NodeShare = {
  /** Number of entries in the table. */
  readonly entries: number;
  /** Number of Services that the node serves. Each Service has one listener. */
  readonly servicesOnNode: number;
  /** Number of Services in the options; larger than `servicesOnNode` if the machine allows too few descriptors. */
  readonly requestedServices: number;
  /** Longest wait for a response of the main thread while the proxy is idle, in milliseconds. */
  readonly restMs: number;
};

/** The readings with one number of Services on the node. */
export type ProxyStartReadings = NodeShare & {
  /** One item for each start of the proxy, each in a new process. */
  readonly starts: readonly ProxyStartReading[];
  /** Scrapes of the last proxy while it was idle. */
  readonly scrapes: readonly ScrapeReading[];
};

export type ProxyStartReading = {
  /** Time from the start of the process until every listener is open in all workers. */
  readonly servingMs: number;
  /** CPU time of all threads until every listener is open. */
  readonly cpuMs: number;
  /** How long the main thread waited for a processor while ready to run, until every listener was open. */
  readonly queuedMs: number;
  readonly peakKiB: number;
};

export type ScrapeReading = {
  readonly ms: number;
  readonly bytes: number;
  /** Longest response time of the main thread to a health check during the scrape. */
  readonly waitMs: number;
};

export type ProxyStartRow = NodeShare & {
  readonly servingMs: Summary;
  readonly cpuMs: Summary;
  /** Absent in results of commits before d2d1c52. */
  readonly queuedMs?: Summary;
  readonly peakKiB: Summary;
  readonly scrapeMs: Summary;
  readonly scrapeBytes: Summary;
  readonly scrapeWaitMs: Summary;
};

export function summarizeProxyStart({ starts, scrapes, ...share }: ProxyStartReadings): ProxyStartRow {
  return {
    ...share,
    servingMs: summarize(starts.map(({ servingMs }) => servingMs)),
    cpuMs: summarize(starts.map(({ cpuMs }) => cpuMs)),
    queuedMs: summarize(starts.map(({ queuedMs }) => queuedMs)),
    peakKiB: summarize(starts.map(({ peakKiB }) => peakKiB)),
    scrapeMs: summarize(scrapes.map(({ ms }) => ms)),
    scrapeBytes: summarize(scrapes.map(({ bytes }) => bytes)),
    scrapeWaitMs: summarize(scrapes.map(({ waitMs }) => waitMs)),
  };
}

const TARGETS = { services: 10_000, ms: 2_000, peakMiB: 400, waitMs: 50 } as const;

const HEADER = [
  ...['Services on node', 'entries', 'serving after, ms', 'CPU, ms', 'queued, ms', 'peak MiB', 'target of the start'],
  ...['scrape, ms', 'MB', 'longest wait in a scrape, ms', 'at rest, ms', 'target of the wait'],
];

export function proxyStartTable(rows: readonly ProxyStartRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(startCells)]);
}

function startCells(row: ProxyStartRow): string[] {
  const { servicesOnNode, requestedServices, entries, servingMs, cpuMs, queuedMs, scrapeWaitMs, restMs } = row;
  const peakMiB = row.peakKiB.highest / 1_024;
  const targets = [formatTarget(servingMs.median, TARGETS.ms, 'ms'), formatTarget(peakMiB, TARGETS.peakMiB, 'MiB')];
  return [
    String(servicesOnNode),
    String(entries),
    formatRange(servingMs),
    cpuMs.median.toFixed(0),
    queuedMs?.median.toFixed(0) ?? '',
    peakMiB.toFixed(0),
    // the target is for a node that serves all Services; fewer Services are accepted if the descriptors do not suffice
    requestedServices >= TARGETS.services ? targets.join('; ') : '',
    row.scrapeMs.median.toFixed(0),
    (row.scrapeBytes.median / 1e6).toFixed(1),
    scrapeWaitMs.median.toFixed(0),
    restMs.toFixed(0),
    formatTarget(scrapeWaitMs.median, TARGETS.waitMs, 'ms'),
  ];
}
