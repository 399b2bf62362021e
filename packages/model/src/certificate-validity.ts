import type { CertificatePair, CertificateValidity, SecretObject } from './snapshot.ts';

const DAY_MS = 86_400_000;
/** Whoever renews by itself has done so by now; who does it by hand has two weeks. */
const EXPIRY_NOTICE_MS = 14 * DAY_MS;
/** Of the life of a certificate that lives for some days only. */
const EXPIRY_NOTICE_SHARE = 1 / 5;

export interface CertificateValidities {
  /** As of `Snapshot`. */
  readonly validity: ReadonlyMap<string, CertificateValidity>;
  /** When it will be another one, milliseconds since the epoch; undefined: never. */
  readonly nextChangeAt: number | undefined;
}

/** What the time `now` (milliseconds since the epoch) says of the certificates. */
export function certificateValidityFor(secrets: readonly SecretObject[], now: number): CertificateValidities {
  const validity = new Map<string, CertificateValidity>();
  let nextChangeAt: number | undefined;
  for (const { namespace, name, certificate } of secrets) {
    if (certificate?.kind !== 'good') continue;
    const { stage, until } = stageOf(certificate, now);
    if (stage !== 'good') validity.set(secretPath(namespace, name), stage);
    if (until !== undefined) nextChangeAt = Math.min(nextChangeAt ?? until, until);
  }
  return { validity, nextChangeAt };
}

function stageOf(
  { notBefore, notAfter }: CertificatePair,
  now: number,
): { readonly stage: CertificateValidity | 'good'; readonly until: number | undefined } {
  const expiresSoonAt = notAfter - Math.min(EXPIRY_NOTICE_MS, (notAfter - notBefore) * EXPIRY_NOTICE_SHARE);
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
