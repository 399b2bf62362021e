import type { TenantUsage } from './tenant-usage.ts';

/** Where usage outlives the store. A directory has none: there the store has a state directory of its own. */
export interface UsageArchive {
  /** All that is kept. Rejects when that cannot be known now. */
  read(): Promise<readonly TenantUsage[]>;
  /** Puts it in place of what is kept of its namespace. Rejects when the archive is away. */
  write(usage: TenantUsage): Promise<ArchiveOutcome>;
  /** Forgets a namespace. */
  remove(namespace: string): Promise<void>;
}

export type ArchiveOutcome =
  | { readonly kind: 'written' }
  /** The namespace is gone or going, and with it who would read this. */
  | { readonly kind: 'left-out' }
  /** Somebody has to put it right: then it can be written. */
  | { readonly kind: 'refused'; readonly reason: string };
