/** What one check found. */
export type CheckAnswer = { readonly kind: 'good' } | { readonly kind: 'bad'; readonly why: string };

export const GOOD: CheckAnswer = { kind: 'good' };

/** `why` completes "its check fails: …". */
export function bad(why: string): CheckAnswer {
  return { kind: 'bad', why };
}

/** For a socket or a parser that failed: its code says more to an operator than its sentence. */
export function badFor(thrown: unknown): CheckAnswer {
  const { code, message } = thrown as Partial<NodeJS.ErrnoException>;
  return bad((typeof code === 'string' ? code : String(message)).slice(0, 80));
}
