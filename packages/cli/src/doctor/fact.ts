/** Something that was looked at, or why it could not be. */
export type Fact<T> = Known<T> | Unknown;

interface Known<T> {
  readonly kind: 'known';
  readonly value: T;
}

/** `failed`: it was asked for and did not answer as it should; `not-asked`: nobody said where it is. */
export interface Unknown {
  readonly kind: 'unknown';
  readonly cause: 'failed' | 'not-asked';
  /** A sentence without its full stop, with what to do. */
  readonly why: string;
}

export function known<T>(value: T): Known<T> {
  return { kind: 'known', value };
}

export function unknown(cause: Unknown['cause'], why: string): Unknown {
  return { kind: 'unknown', cause, why };
}
