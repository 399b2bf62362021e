import type { CertificatePair, CertificateValidity, SecretObject } from './snapshot.ts';

const DAY_MS = 86_400_000;
/** Automatic renewal has happened before two weeks are left; whoever renews by hand has two weeks to do so. */
const EXPIRY_NOTICE_MS = 14 * DAY_MS;
/** For a certificate that is valid for a few days: the last part of its validity in which it counts as expiring. */
const EXPIRY_NOTICE_SHARE = 1 / 5;

export interface CertificateValidities {
  /** As `Snapshot.validity`: by `secretPath`, only certificates that are early, expiring or expired. */
  readonly validity: ReadonlyMap<string, CertificateValidity>;
  /** When `validity` changes next, milliseconds since the epoch; undefined if never. */
  readonly nextChangeAt: number | undefined;
}

/** The validity of the certificates of `secrets` at `now` (milliseconds since the epoch). */
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
  // The second of notAfter belongs to the validity (RFC 5280, 4.1.2.5).
  const endsAt = notAfter + 1_000;
  if (now < notBefore) return { stage: 'early', until: notBefore };
  if (now < expiresSoonAt) return { stage: 'good', until: expiresSoonAt };
  if (now < endsAt) return { stage: 'expiring', until: endsAt };
  return { stage: 'expired', until: undefined };
}

/** `namespace/name`, which is unique, since no name contains a slash. */
export function secretPath(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
