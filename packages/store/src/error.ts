import { WeirError } from '@weir/runtime';

export type StoreErrorCode =
  /** No answer, or no connection: try again later. */
  | 'AWAY'
  /** A follower missed revisions: read the whole table again. */
  | 'GAP'
  /** It answers, but refuses us: password, permission, version, eviction policy. */
  | 'REFUSED'
  /** A file of the state directory cannot be used. */
  | 'DAMAGED';

/** The store failing, with what to do in the message. */
export class StoreError extends WeirError<StoreErrorCode> {}
