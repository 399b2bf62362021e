// Types of response bodies of the console's API.
import type { Explanation, Rate, SuspensionAuditItem, SuspensionItem } from '@weir/console';
import type { TenantView } from '@weir/model';

export interface ItemList<T> {
  readonly items: readonly T[];
}

export type TenantItem = TenantView & { readonly rate: Rate; readonly suspension: SuspensionItem | null };

export type ServiceExplanation = Explanation & { readonly suspensions: readonly SuspensionItem[]; readonly rate: Rate };

export interface AuditPage extends ItemList<SuspensionAuditItem> {
  /** The id to pass as `before` for older items; null on the last page. */
  readonly next: string | null;
}
