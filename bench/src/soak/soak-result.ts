import { markdownTable } from '../report/markdown-table.ts';
import type { TrafficTotals } from '../subjects/subject.ts';
import type { ClientTotals } from './client-totals.ts';
import type { EndpointTotals } from './endpoint-process.ts';
import type { DatagramTotals } from './load-generator.ts';
import { type DescriptorCounts, type MallocBytes, MEMORY_KINDS, type ResidentKiBByKind } from './process-resources.ts';
import type { ProxyView } from './proxy-view.ts';
import { SERVICE_NAMES, type ServiceName } from './services.ts';

/** Resources of the process without connections, after garbage collections. */
export type ResourceUsage = {
  readonly descriptors: DescriptorCounts;
  readonly residentKiB: ResidentKiBByKind;
  readonly malloc: MallocBytes;
  readonly heapBytes: { readonly main: number; readonly workers: number };
};

/** Everything that the checks compare. */
export type SoakResult = {
  /** Measured between the warm-up and the load, when all connections of the warm-up have ended. */
  readonly before: ResourceUsage;
  /** Measured after the load, when all of its connections have ended. */
  readonly after: ResourceUsage;
  readonly view: ProxyView;
  readonly ledger: Readonly<Partial<Record<string, TrafficTotals>>>;
  readonly clientTotals: Readonly<Record<ServiceName, ClientTotals>>;
  readonly datagramTotals: DatagramTotals;
  readonly endpointTotals: Readonly<Record<ServiceName, EndpointTotals>>;
  readonly workers: number;
  /** Number of workers that the fault injector crashed. */
  readonly endedWorkers: number;
  readonly proxyLog: string;
  /** How the process exited after SIGTERM. */
  readonly exit: { readonly code: number | null; readonly signal: string | null };
};

export function residentBytes({ residentKiB }: ResourceUsage): number {
  return Object.values(residentKiB).reduce((sum, kib) => sum + kib, 0) * 1024;
}

/**
 * Returns the resident memory without the free memory of malloc. Counts twice the allocations that malloc maps separately, which
 * makes leaks of such allocations easier to find.
 */
export function usedBytes(rest: ResourceUsage): number {
  return residentBytes(rest) - rest.residentKiB.malloc * 1024 + rest.malloc.used;
}

export function formatSoakResult(
  reading: SoakResult,
  {
    minutes,
    startedClients,
    faultCounts,
  }: {
    readonly minutes: number;
    readonly startedClients: number;
    readonly faultCounts: Readonly<Record<string, number>>;
  },
): string {
  const faults = Object.entries(faultCounts).map(([what, times]) => `${what} ${times}`);
  return [
    '',
    `${minutes} minutes, ${startedClients} clients; faults: ${faults.join(', ')}.`,
    '',
    ...markdownTable([
      ['Service', 'client connections', 'not accepted', 'admitted', 'outcomes', 'received', 'sent', 'client outcomes'],
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
    isDatagrams ? `answered ${datagramTotals.answeredSockets}` : formatCounts(clientOutcomes),
  ];
}

function resourceUsageRows({ before, after }: SoakResult): string[][] {
  const kinds = [...new Set([...Object.keys(before.descriptors), ...Object.keys(after.descriptors)])].sort();
  const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
  const both = (read: (rest: ResourceUsage) => number): string[] => [mib(read(before)), mib(read(after))];
  return [
    ['at rest', 'before', 'after'],
    ['resident memory', ...both((rest) => residentBytes(rest))],
    ...MEMORY_KINDS.map((kind) => [`of it: ${kind}`, ...both(({ residentKiB }) => residentKiB[kind] * 1024)]),
    ['in malloc: in use', ...both(({ malloc }) => malloc.used)],
    ['in malloc: free', ...both(({ malloc }) => malloc.free)],
    ['resident without free memory of malloc', ...both((rest) => usedBytes(rest))],
    ['heap of the main thread', ...both(({ heapBytes }) => heapBytes.main)],
    ['heaps of the workers', ...both(({ heapBytes }) => heapBytes.workers)],
    ...kinds.map((kind) => [
      `descriptors: ${kind}`,
      String(before.descriptors[kind] ?? 0),
      String(after.descriptors[kind] ?? 0),
    ]),
  ];
}

function formatCounts(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
}
