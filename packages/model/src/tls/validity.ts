import type { CertificatePair, SecretObject, Validity } from '../snapshot.ts';

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
    const { stage, until } = stageOf(certificate, now);
    if (stage !== 'good') validity.set(secretPath(namespace, name), stage);
    if (until !== undefined) nextAt = Math.min(nextAt ?? until, until);
  }
  return { validity, nextAt };
}

function stageOf(
  { notBefore, notAfter }: CertificatePair,
  now: number,
): { readonly stage: Validity | 'good'; readonly until: number | undefined } {
  const expiresSoonAt = notAfter - Math.min(NOTICE_MS, (notAfter - notBefore) * NOTICE_SHARE);
  // It is good in the second in which it ends (RFC 5280, 4.1.2.5).
  const endsAt = notAfter + 1_000;
  if (now < notBefore) return { stage: 'early', until: notBefore };
  if (now < expiresSoonAt) return { stage: 'good', until: expiresSoonAt };
  if (now < endsAt) return { stage: 'expiring', until: endsAt };
  return { stage: 'expired', until: undefined };
}

/** No name holds a slash. */
export function secretPath(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
