import type { DatagramTally } from './datagram-clients.ts';
import type { EndpointCount } from './endpoint-process.ts';
import type { MallocBytes } from './malloc.ts';
import type { OpenFiles } from './open-files.ts';
import type { SelfView } from './proxy-self-view.ts';
import type { ResidentKinds } from './resident-kinds.ts';
import type { ServiceName } from './services.ts';
import type { Tally } from './tally.ts';

export type Metered = { readonly receivedBytes: number; readonly sentBytes: number; readonly connections: number };

/** What the process holds while nothing is under way, after its garbage was collected. */
export type AtRest = {
  readonly files: OpenFiles;
  readonly residentKiB: ResidentKinds;
  readonly malloc: MallocBytes;
  readonly heapBytes: { readonly main: number; readonly workers: number };
};

/** All that is known when everything has ended. */
export type Reading = {
  /** After the warm-up, when all had gone. */
  readonly before: AtRest;
  readonly after: AtRest;
  readonly view: SelfView;
  readonly ledger: Readonly<Partial<Record<string, Metered>>>;
  readonly tallies: Readonly<Record<ServiceName, Tally>>;
  readonly datagrams: DatagramTally;
  readonly endpoints: Readonly<Record<ServiceName, EndpointCount>>;
  readonly workers: number;
  /** How many workers were ended, and what the process said of itself. */
  readonly workersEnded: number;
  readonly said: string;
  /** After SIGTERM. */
  readonly exit: { readonly code: number | null; readonly signal: string | null };
};

export function residentBytes({ residentKiB }: AtRest): number {
  return Object.values(residentKiB).reduce((sum, kib) => sum + kib, 0) * 1024;
}

/** What is resident, without what malloc has free of it. What it has mapped apart counts twice, which finds a leak of that sooner. */
export function heldBytes(rest: AtRest): number {
  return residentBytes(rest) - rest.residentKiB.malloc * 1024 + rest.malloc.used;
}
