import { createHash, createPrivateKey, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { CertificatePair, UnusableSecret } from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { type PemCertificates, readCertificates, unusable } from './pem-certificates.ts';
import type { SecretValue } from './secret-values.ts';

export interface PairValues {
  /** `tls.crt` */
  readonly chain: SecretValue;
  /** `tls.key` */
  readonly key: SecretValue;
}

/** What proxies can show their clients. The private key leaves only sealed; null: there is neither it nor a certificate. */
export function readCertificatePair(
  { chain, key }: PairValues,
  sealer: Sealer,
): CertificatePair | UnusableSecret | null {
  if (chain.kind === 'unusable') return chain;
  if (key.kind === 'unusable') return key;
  if (chain.kind === 'none') return key.kind === 'none' ? null : unusable('has a tls.key but no tls.crt');
  if (key.kind === 'none') return unusable('has a tls.crt but no tls.key');
  const certificates = readCertificates(chain.text, 'tls.crt');
  if (certificates.kind === 'unusable') return certificates;
  const { list } = certificates;
  const read = readPrivateKey(key.text);
  if (read.kind === 'unusable') return read;
  const { privateKey } = read;
  const owner = list.findIndex((each) => each.checkPrivateKey(privateKey));
  if (owner < 0) return unusable('has a tls.key that does not belong to its tls.crt');
  if (owner > 0)
    return unusable(
      `has the certificate of its tls.key as number ${owner + 1} in its tls.crt; it must be the first, and those that lead to its CA follow`,
    );
  const pem = { chain: list.map(String).join(''), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  const refusal = openSslRefusal(pem);
  if (refusal !== undefined) return unusable(`has a certificate that OpenSSL refuses: ${refusal}`);
  const keyDigest = publicKeyDigest(list[0].publicKey);
  return Object.freeze({
    kind: 'good',
    chain: pem.chain,
    keyDigest,
    sealedKey: sealer.seal(pem.key, keyDigest),
    ...validityPeriodOf(list),
  });
}

/** For each new connection it is used once, in a thread that serves others as well: the time grows with the cube of its length. */
const MAX_RSA_BITS = 4_096;
const KEY_TYPES: readonly (string | undefined)[] = ['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448'];
/** As OpenSSL calls P-256, P-384 and P-521. TLS 1.3 signs by no others (RFC 8446, 4.2.3): OpenSSL takes the key and then turns all clients away. */
const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];
/** To which a key of RSA-PSS may be restricted, and the bytes of each: TLS signs by these, with as much salt. */
const PSS_DIGESTS: ReadonlyMap<string, number> = new Map([
  ['sha256', 32],
  ['sha384', 48],
  ['sha512', 64],
]);

function readPrivateKey(text: string): { readonly kind: 'key'; readonly privateKey: KeyObject } | UnusableSecret {
  if (/^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text))
    return unusable('has a tls.key that is encrypted; use one without a passphrase');
  if (!text.includes('PRIVATE KEY-----'))
    return unusable('has a tls.key without a private key in PEM, which begins with -----BEGIN PRIVATE KEY-----');
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(text);
  } catch {
    return unusable('has a tls.key that is damaged, or of a kind that is not known');
  }
  const why = unsupportedKeyReason(privateKey);
  return why === undefined ? { kind: 'key', privateKey } : unusable(why);
}

function unsupportedKeyReason({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): string | undefined {
  if (!KEY_TYPES.includes(asymmetricKeyType))
    return `has a tls.key of type ${asymmetricKeyType}; use ECDSA, RSA or Ed25519`;
  const { modulusLength = 0, namedCurve, hashAlgorithm, saltLength = 0 } = asymmetricKeyDetails;
  if (modulusLength > MAX_RSA_BITS)
    return `has an RSA key of ${modulusLength} bits; use at most ${MAX_RSA_BITS}, or ECDSA`;
  if (asymmetricKeyType === 'ec' && !CURVES.includes(namedCurve))
    return `has a tls.key on ${namedCurve ?? 'a curve of its own'}, which TLS clients do not take; use P-256, P-384 or P-521`;
  if (hashAlgorithm !== undefined && (PSS_DIGESTS.get(hashAlgorithm) ?? -1) < saltLength)
    return `has an RSA-PSS key for ${hashAlgorithm} with ${saltLength} bytes of salt, which TLS cannot use; use one without restrictions, or ECDSA`;
  return undefined;
}

/** The last word is of whoever uses them: it refuses keys that are too short, and more. */
function openSslRefusal({ chain, key }: { readonly chain: string; readonly key: string }): string | undefined {
  try {
    // Without `ca` it would read those of the system, too.
    createSecureContext({ cert: chain, key, ca: [] });
    return undefined;
  } catch (error) {
    // One of a list in OpenSSL; its message has nothing of the key.
    const { reason } = error as { reason?: unknown };
    return typeof reason === 'string' ? reason : 'it gives no reason';
  }
}

function publicKeyDigest(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
}

/** Of those behind these two a client may need none: chains end in roots, and in cross-signed ones that have ended while their keys live on. */
function validityPeriodOf([server, ...others]: PemCertificates['list']): Pick<
  CertificatePair,
  'notBefore' | 'notAfter'
> {
  const issuer = others.find((each) => server.checkIssued(each) && !each.checkIssued(each));
  const needed = issuer === undefined ? [server] : [server, issuer];
  return {
    notBefore: Math.max(...needed.map(({ validFromDate }) => validFromDate.getTime())),
    notAfter: Math.min(...needed.map(({ validToDate }) => validToDate.getTime())),
  };
}
