/** Something that was looked at, or why it could not be. */
export type Fact<T> = KnownFact<T> | UnknownFact;

interface KnownFact<T> {
  readonly kind: 'known';
  readonly value: T;
}

/** `failed`: it was asked for and did not answer as it should; `not-asked`: nobody said where it is. */
export interface UnknownFact {
  readonly kind: 'unknown';
  readonly cause: 'failed' | 'not-asked';
  /** A sentence without its full stop, with what to do. */
  readonly message: string;
}

export function knownFact<T>(value: T): KnownFact<T> {
  return { kind: 'known', value };
}

export function unknownFact(cause: UnknownFact['cause'], message: string): UnknownFact {
  return { kind: 'unknown', cause, message };
}
