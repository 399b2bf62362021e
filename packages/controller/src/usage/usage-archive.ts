import type { TenantUsage } from './tenant-usage.ts';

/** Where usage outlives the store. A directory has none: there the store has a state directory of its own. */
export interface UsageArchive {
  /** All that is kept. Rejects when that cannot be known now. */
  read(): Promise<readonly TenantUsage[]>;
  /** Puts it in place of what is kept of its namespace. One whose namespace is gone is left out. */
  write(usage: TenantUsage): Promise<void>;
  /** Forgets a namespace. */
  remove(namespace: string): Promise<void>;
}
