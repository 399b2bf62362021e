import { type Summary, summarize, summarizeTail, type TailSummary } from '../measure/statistics.ts';
import { formatTarget, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { CutoffScenarioName } from './options.ts';
import type { OthersReport } from './other-clients-process.ts';
import type { Attempts, ConnectionReading } from './target-clients-process.ts';
import { CONNECTION_KINDS, type ConnectionKind } from './topology.ts';

export type CutoffResult = RunMetadata & {
  readonly proxies: number;
  readonly connections: number;
  readonly rounds: number;
  readonly rows: readonly CutoffRow[];
  /** Absent if the scenario did not run. */
  readonly restart?: RestartReading;
};

/** One round of a scenario. */
export type CutoffReading = {
  readonly connections: readonly ConnectionReading[];
  /** When the cut-off began for each proxy, by the index of the proxy, on the machine's monotonic clock. */
  readonly startedAt: readonly number[];
  readonly commandMs: number;
  /** What the clients of the other tenant noticed immediately before the cut-off, and from its start until all connections had ended. */
  readonly before: OthersReport;
  readonly during: OthersReport;
};

/** What clients of the target got while all processes were killed and started again. */
export type RestartReading = Attempts & {
  /** Whether the clients were served again after `weir resume`. */
  readonly resumed: boolean;
};

/** The summary of a scenario over all rounds. Times are in ms from the start of the cut-off. */
export type CutoffRow = {
  readonly scenario: CutoffScenarioName;
  readonly connections: number;
  /** Connections that did not end. */
  readonly open: number;
  readonly commandMs: Summary;
  /** 0 for a connection whose last byte arrived before the start. */
  readonly lastByteMs: TailSummary;
  readonly lastByteMsByKind: Readonly<Record<ConnectionKind, TailSummary>>;
  /** When clients noticed the end. Without UDP, whose clients notice the end only when they send again. */
  readonly endMs: TailSummary;
  readonly others: {
    readonly operations: number;
    readonly lost: number;
    readonly firstLoss: string | null;
    /** Percentiles of each round, and of these the medians. */
    readonly before: LatencyMs;
    readonly during: LatencyMs;
  };
};

type LatencyMs = { readonly p50: number; readonly p99: number };

export function summarizeCutoff(scenario: CutoffScenarioName, rounds: readonly CutoffReading[]): CutoffRow {
  const connections = rounds.flatMap((round) => round.connections.map((reading) => timesOf(reading, round)));
  const lastBytesOf = (wanted: readonly ConnectionKind[]): number[] =>
    connections.flatMap(({ kind, lastByteMs }) => (wanted.includes(kind) ? [lastByteMs] : []));
  const during = rounds.map((round) => round.during);
  return {
    scenario,
    connections: connections.length,
    open: connections.filter(({ endMs }) => endMs === null).length,
    commandMs: summarize(rounds.map(({ commandMs }) => commandMs)),
    lastByteMs: summarizeTail(lastBytesOf(CONNECTION_KINDS)),
    lastByteMsByKind: Object.fromEntries(
      CONNECTION_KINDS.map((kind) => [kind, summarizeTail(lastBytesOf([kind]))]),
    ) as CutoffRow['lastByteMsByKind'],
    endMs: summarizeTail(connections.flatMap(({ kind, endMs }) => (kind === 'udp' || endMs === null ? [] : [endMs]))),
    others: {
      operations: during.reduce((sum, { operations }) => sum + operations, 0),
      lost: during.reduce((sum, { lost }) => sum + lost, 0),
      firstLoss: during.find(({ firstLoss }) => firstLoss !== null)?.firstLoss ?? null,
      before: medianLatency(rounds.map(({ before }) => before)),
      during: medianLatency(during),
    },
  };
}

function timesOf({ kind, proxy, lastByteAt, endedAt }: ConnectionReading, { startedAt }: CutoffReading) {
  const start = startedAt[proxy] ?? Number.NaN;
  return { kind, lastByteMs: Math.max(0, lastByteAt - start), endMs: endedAt === null ? null : endedAt - start };
}

function medianLatency(reports: readonly OthersReport[]): LatencyMs {
  return {
    p50: summarize(reports.map(({ p50 }) => p50)).median,
    p99: summarize(reports.map(({ p99 }) => p99)).median,
  };
}

const TARGET_P99_MS = 1_000;

const HEADER = [
  ...['scenario', 'connections', 'command, ms', 'last byte: p50, ms', 'p99, ms', 'highest, ms'],
  ...['end: p50, ms', 'p99, ms', 'highest, ms', 'not ended', 'others before: p50, p99, ms', 'during: p50, p99, ms'],
  ...['operations', 'lost', 'target of p99'],
];

export function cutoffTable(rows: readonly CutoffRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(cutoffCells)]);
}

function cutoffCells({ scenario, connections, open, commandMs, lastByteMs, endMs, others }: CutoffRow): string[] {
  const tail = ({ median, p99, highest }: TailSummary): string[] => [median, p99, highest].map((ms) => ms.toFixed(0));
  const latency = ({ p50, p99 }: LatencyMs): string => `${p50.toFixed(1)}, ${p99.toFixed(1)}`;
  return [
    scenario,
    String(connections),
    commandMs.median.toFixed(0),
    ...tail(lastByteMs),
    ...tail(endMs),
    String(open),
    latency(others.before),
    latency(others.during),
    String(others.operations),
    String(others.lost),
    formatTarget(lastByteMs.p99, TARGET_P99_MS, 'ms'),
  ];
}

export function kindTable(rows: readonly CutoffRow[]): string[] {
  const header = ['last byte: p99 and highest, ms', ...CONNECTION_KINDS];
  const cells = ({ scenario, lastByteMsByKind }: CutoffRow): string[] => [
    scenario,
    ...CONNECTION_KINDS.map((kind) => {
      const { p99, highest } = lastByteMsByKind[kind];
      return `${p99.toFixed(0)}, ${highest.toFixed(0)}`;
    }),
  ];
  return markdownTable([header, ...rows.map(cells)]);
}

export function formatRestart({ attempts, served, resumed }: RestartReading): string {
  return `restart: ${served} of ${attempts} attempts to connect were served; after weir resume, clients ${resumed ? 'are' : 'are not'} served`;
}

/** Whether all connections ended in time, and no operation of the other tenant was lost. */
export function isCutOff({ open, lastByteMs, others }: CutoffRow): boolean {
  return open === 0 && lastByteMs.p99 <= TARGET_P99_MS && others.lost === 0;
}

export function holdsAcrossRestart({ served, resumed }: RestartReading): boolean {
  return served === 0 && resumed;
}
