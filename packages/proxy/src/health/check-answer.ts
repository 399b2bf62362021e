/** What one check found. */
export type CheckResult = { readonly kind: 'good' } | { readonly kind: 'bad'; readonly why: string };

export const PASSED: CheckResult = { kind: 'good' };

/** `why` completes "its check fails: …". */
export function failed(why: string): CheckResult {
  return { kind: 'bad', why };
}

/** For a socket or a parser that failed: its code says more to an operator than its sentence. */
export function failedWith(thrown: unknown): CheckResult {
  const { code, message } = thrown as Partial<NodeJS.ErrnoException>;
  return failed((typeof code === 'string' ? code : String(message)).slice(0, 80));
}
