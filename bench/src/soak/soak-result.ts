import { markdownTable } from '../report/markdown-table.ts';
import type { ClientTotals } from './client-totals.ts';
import type { EndpointTotals } from './endpoint-process.ts';
import type { DatagramTotals } from './load-generator.ts';
import { type DescriptorCounts, type MallocBytes, MEMORY_KINDS, type ResidentKiBByKind } from './process-resources.ts';
import type { ProxyView } from './proxy-view.ts';
import { SERVICE_NAMES, type ServiceName } from './services.ts';

export type TrafficTotals = {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
};

/** What the process holds while nothing is under way, after its garbage was collected. */
export type ResourceUsage = {
  readonly files: DescriptorCounts;
  readonly residentKiB: ResidentKiBByKind;
  readonly malloc: MallocBytes;
  readonly heapBytes: { readonly main: number; readonly workers: number };
};

/** All that is known when everything has ended. */
export type SoakResult = {
  /** After the warm-up, when all had gone. */
  readonly before: ResourceUsage;
  readonly after: ResourceUsage;
  readonly view: ProxyView;
  readonly ledger: Readonly<Partial<Record<string, TrafficTotals>>>;
  readonly clientTotals: Readonly<Record<ServiceName, ClientTotals>>;
  readonly datagramTotals: DatagramTotals;
  readonly endpointTotals: Readonly<Record<ServiceName, EndpointTotals>>;
  readonly workers: number;
  /** How many workers were ended, and what the process said of itself. */
  readonly endedWorkers: number;
  readonly proxyLog: string;
  /** After SIGTERM. */
  readonly exit: { readonly code: number | null; readonly signal: string | null };
};

export function residentBytes({ residentKiB }: ResourceUsage): number {
  return Object.values(residentKiB).reduce((sum, kib) => sum + kib, 0) * 1024;
}

/** What is resident, without what malloc has free of it. What it has mapped apart counts twice, which finds a leak of that sooner. */
export function usedBytes(rest: ResourceUsage): number {
  return residentBytes(rest) - rest.residentKiB.malloc * 1024 + rest.malloc.used;
}

/** What was read, as tables. */
export function formatSoakResult(
  reading: SoakResult,
  {
    minutes,
    born,
    rounds,
  }: { readonly minutes: number; readonly born: number; readonly rounds: Readonly<Record<string, number>> },
): string {
  const disturbed = Object.entries(rounds).map(([what, times]) => `${what} ${times}`);
  return [
    '',
    `${minutes} minutes, ${born} clients; disturbances: ${disturbed.join(', ')}.`,
    '',
    ...markdownTable([
      ['Service', 'clients connected', 'never seen', 'given', 'outcomes', 'received', 'sent', 'how clients ended'],
      ...SERVICE_NAMES.map((name) => serviceRow(name, reading)),
    ]),
    '',
    ...markdownTable(resourceUsageRows(reading)),
    '',
  ].join('\n');
}

function serviceRow(name: ServiceName, { view, ledger, clientTotals, datagramTotals }: SoakResult): string[] {
  const { established, clientOutcomes } = clientTotals[name];
  const outcomes = view.services.find((service) => service.name === name)?.outcomes ?? {};
  const metered = ledger[name];
  const isDatagrams = name === 'datagrams';
  return [
    name,
    String(isDatagrams ? datagramTotals.sockets : established),
    isDatagrams ? '' : String(established - Object.values(outcomes).reduce((sum, each) => sum + each, 0)),
    String(metered?.connections ?? ''),
    formatCounts(outcomes),
    String(metered?.receivedBytes ?? ''),
    String(metered?.sentBytes ?? ''),
    isDatagrams ? `answered ${datagramTotals.answered}` : formatCounts(clientOutcomes),
  ];
}

function resourceUsageRows({ before, after }: SoakResult): string[][] {
  const kinds = [...new Set([...Object.keys(before.files), ...Object.keys(after.files)])].sort();
  const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
  const both = (read: (rest: ResourceUsage) => number): string[] => [mib(read(before)), mib(read(after))];
  return [
    ['at rest', 'before', 'after'],
    ['resident memory', ...both((rest) => residentBytes(rest))],
    ...MEMORY_KINDS.map((kind) => [`of it: ${kind}`, ...both(({ residentKiB }) => residentKiB[kind] * 1024)]),
    ['in malloc: in use', ...both(({ malloc }) => malloc.used)],
    ['in malloc: free', ...both(({ malloc }) => malloc.free)],
    ['resident but for what malloc has free', ...both((rest) => usedBytes(rest))],
    ['heap of the main thread', ...both(({ heapBytes }) => heapBytes.main)],
    ['heaps of the workers', ...both(({ heapBytes }) => heapBytes.workers)],
    ...kinds.map((kind) => [`descriptors: ${kind}`, String(before.files[kind] ?? 0), String(after.files[kind] ?? 0)]),
  ];
}

function formatCounts(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
}
