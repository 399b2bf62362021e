/** Whether this controller leads. Winning an election is not enough to write the table: the store fences by a token of its own. */
export interface Leadership {
  /** Right at any moment, also just after this process stood still for a while and no timer has run yet. */
  readonly isLeader: boolean;
  /** Told of each change of `isLeader`; returns the way to stop. */
  onChange(listener: () => void): () => void;
  /** Looks at the election now: the store says that somebody else led after us. */
  recheck(): Promise<void>;
  /** Gives the lead away, so that the next one need not wait. */
  close(): Promise<void>;
}

/** Where there is only one. */
export const ALWAYS_LEADER: Leadership = Object.freeze({
  isLeader: true,
  onChange: () => () => undefined,
  recheck: async () => undefined,
  close: async () => undefined,
});
