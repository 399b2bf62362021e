import type { DatagramTotals } from './datagram-clients.ts';
import type { EndpointTotals } from './endpoint-process.ts';
import type { MallocBytes } from './malloc.ts';
import type { DescriptorCounts } from './open-files.ts';
import type { ProxyView } from './proxy-self-view.ts';
import type { ResidentKiBByKind } from './resident-kinds.ts';
import type { ServiceName } from './services.ts';
import type { ClientTotals } from './tally.ts';

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
