import type { CertificatePair, CertificateValidity, SecretObject } from './snapshot.ts';

const DAY_MS = 86_400_000;
/** A certificate counts as expiring so long before its end. Two weeks are enough to renew by hand; automatic renewal happens earlier. */
const EXPIRY_NOTICE_MS = 14 * DAY_MS;
/** A short-lived certificate counts as expiring in the last fifth of its validity. */
const EXPIRY_NOTICE_SHARE = 1 / 5;

export interface CertificateValidities {
  /** The early, expiring and expired certificates by `objectPath`, as in `Snapshot.validity`. */
  readonly validity: ReadonlyMap<string, CertificateValidity>;
  /** When `validity` changes next, milliseconds since the epoch; undefined if never. */
  readonly nextChangeAt: number | undefined;
}

/** Returns the validity of the certificates of `secrets` at `now` (milliseconds since the epoch). */
export function certificateValidityFor(secrets: readonly SecretObject[], now: number): CertificateValidities {
  const validity = new Map<string, CertificateValidity>();
  let nextChangeAt: number | undefined;
  for (const { namespace, name, certificate } of secrets) {
    if (certificate?.kind !== 'good') continue;
    const { stage, until } = stageOf(certificate, now);
    if (stage !== 'good') validity.set(objectPath(namespace, name), stage);
    if (until !== undefined) nextChangeAt = Math.min(nextChangeAt ?? until, until);
  }
  return { validity, nextChangeAt };
}

function stageOf(
  { notBefore, notAfter }: CertificatePair,
  now: number,
): { readonly stage: CertificateValidity | 'good'; readonly until: number | undefined } {
  const expiresSoonAt = notAfter - Math.min(EXPIRY_NOTICE_MS, (notAfter - notBefore) * EXPIRY_NOTICE_SHARE);
  // The certificate is still valid during the second of notAfter (RFC 5280, section 4.1.2.5).
  const endsAt = notAfter + 1_000;
  if (now < notBefore) return { stage: 'early', until: notBefore };
  if (now < expiresSoonAt) return { stage: 'good', until: expiresSoonAt };
  if (now < endsAt) return { stage: 'expiring', until: endsAt };
  return { stage: 'expired', until: undefined };
}

/** Returns `namespace/name`, which is unique because names contain no slash. */
export function objectPath(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
