import type { ListenerKey } from '@weir/model/data-plane';

/** What may be opened at all. */
export type ListenerMode =
  | { readonly kind: 'serving' }
  /** Another proxy listens where it says, and is about to close. */
  | { readonly kind: 'beside'; readonly others: ReadonlySet<ListenerKey> }
  /** A successor is opening its listeners beside ours: nothing of ours changes meanwhile. */
  | { readonly kind: 'frozen' }
  /** Nothing is open: another proxy serves this node. */
  | { readonly kind: 'blocked'; readonly reason: string }
  /** Nothing is open, and nothing is said: a drain, or a proxy that has handed over. */
  | { readonly kind: 'silent' };
