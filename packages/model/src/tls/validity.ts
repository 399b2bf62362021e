import type { SecretObject, Validity } from '../snapshot.ts';

const DAY_MS = 86_400_000;
/** Whoever renews by itself has done so by now; who does it by hand has two weeks. */
const NOTICE_MS = 14 * DAY_MS;
/** Of the life of a certificate that lives for some days only. */
const NOTICE_SHARE = 1 / 5;

export interface Validities {
  /** As of `Snapshot`. */
  readonly validity: ReadonlyMap<string, Validity>;
  /** When it will be another one, milliseconds since the epoch; undefined: never. */
  readonly nextAt: number | undefined;
}

/** What the time `now` (milliseconds since the epoch) says of the certificates. */
export function validityFor(secrets: readonly SecretObject[], now: number): Validities {
  const validity = new Map<string, Validity>();
  let nextAt: number | undefined;
  for (const { namespace, name, certificate } of secrets) {
    if (certificate?.kind !== 'good') continue;
    const { notBefore, notAfter } = certificate;
    const expiresSoonAt = notAfter - Math.min(NOTICE_MS, (notAfter - notBefore) * NOTICE_SHARE);
    // A certificate is good in the second in which it ends (RFC 5280, 4.1.2.5).
    const ends = [notBefore, expiresSoonAt, notAfter + 1_000];
    const stage = ends.findIndex((end) => now < end);
    const found = STAGES[stage];
    if (found !== undefined) validity.set(secretPath(namespace, name), found);
    const next = ends[stage];
    if (next !== undefined) nextAt = Math.min(nextAt ?? next, next);
    if (stage < 0) validity.set(secretPath(namespace, name), 'expired');
  }
  return { validity, nextAt };
}

/** While the first, second, third of its ends is still to come. */
const STAGES: readonly (Validity | undefined)[] = ['early', undefined, 'expiring'];

/** No name holds a slash. */
export function secretPath(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
