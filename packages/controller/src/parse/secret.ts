import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { CertificatePair, ClientAuthorities, SecretObject, UnusableSecret } from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { DNS_LABEL, DNS_SUBDOMAIN } from './formats.ts';
import { type ParseResult, parseObject } from './parse-object.ts';

/** Of everything in a Secret only three values are looked at; the private key is sealed at once, and the rest is forgotten. */
export function parseSecret(raw: unknown, sealer: Sealer): ParseResult<SecretObject> {
  return parseObject('Secret', raw, (fields) => {
    const metadata = fields.object('metadata');
    const pair = { chain: readSecretValue(raw, 'tls.crt'), key: readSecretValue(raw, 'tls.key') };
    return {
      namespace: metadata.requiredText('namespace', DNS_LABEL),
      name: metadata.requiredText('name', DNS_SUBDOMAIN),
      certificate: readCertificatePair(pair, sealer),
      authorities: readAuthorities(readSecretValue(raw, 'ca.crt')),
    };
  });
}

function readAuthorities(value: SecretValue): ClientAuthorities | UnusableSecret | null {
  if (value.kind === 'none') return null;
  if (value.kind === 'unusable') return value;
  const certificates = readCertificates(value.text, 'ca.crt');
  if (certificates.kind === 'unusable') return certificates;
  const { list } = certificates;
  // It could vouch for itself at best, and whoever named it by mistake would wonder why no client is let in.
  const other = list.findIndex((each) => !each.ca);
  if (other >= 0) return unusable(`has a ca.crt whose certificate ${other + 1} is not that of a CA`);
  return Object.freeze({ kind: 'good', certificates: list.map(String).join('') });
}

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

export interface PemCertificates {
  readonly kind: 'certificates';
  readonly list: readonly [X509Certificate, ...X509Certificate[]];
}

/** Whoever may write a Secret can make us read as many, and every proxy of the fleet keep them. */
const MAX_CERTIFICATES = 20;
const PEM_BEGIN = '-----BEGIN CERTIFICATE-----';
const PEM_END = '-----END CERTIFICATE-----';

/** What stands between them (comments of bundles, a private key) is left out. `from` is the name of the key in the Secret. */
export function readCertificates(text: string, from: string): PemCertificates | UnusableSecret {
  const blocks = pemBlocksIn(text);
  if (blocks.length > MAX_CERTIFICATES)
    return unusable(`has more than ${MAX_CERTIFICATES} certificates in its ${from}; leave out what is not needed`);
  const list: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    const certificate = block.endsWith(PEM_END) ? readCertificate(block) : undefined;
    if (certificate === undefined)
      return unusable(`has a ${from} whose certificate ${index + 1} is damaged or cut off`);
    list.push(certificate);
  }
  const [first, ...others] = list;
  return first === undefined
    ? unusable(`has a ${from} without a certificate in PEM, which begins with ${PEM_BEGIN}`)
    : { kind: 'certificates', list: [first, ...others] };
}

export function unusable(why: string): UnusableSecret {
  return Object.freeze({ kind: 'unusable', why });
}

/** At most one more than is allowed. One without end goes up to the end of the text. */
function pemBlocksIn(text: string): string[] {
  const blocks: string[] = [];
  for (let from = text.indexOf(PEM_BEGIN); from >= 0 && blocks.length <= MAX_CERTIFICATES; ) {
    const end = text.indexOf(PEM_END, from);
    const to = end < 0 ? text.length : end + PEM_END.length;
    blocks.push(text.slice(from, to));
    from = text.indexOf(PEM_BEGIN, to);
  }
  return blocks;
}

function readCertificate(pem: string): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(pem);
    const { validFromDate, validToDate, publicKey } = certificate;
    const areTimes = Number.isFinite(validFromDate.getTime()) && Number.isFinite(validToDate.getTime());
    return areTimes && publicKey.type === 'public' ? certificate : undefined;
  } catch {
    return undefined;
  }
}

export type SecretValue = { readonly kind: 'none' } | { readonly kind: 'text'; readonly text: string } | UnusableSecret;
/** Of one value. Twenty long certificates are a third of it. */
const MAX_VALUE_BYTES = 64 * 1024;
const NO_VALUE: SecretValue = { kind: 'none' };

/**
 * A value of a Secret as it stands in a manifest or comes from an API server. Not by `Fields`, which say what they found instead: nothing
 * of what is in a Secret is ever told.
 */
export function readSecretValue(raw: unknown, key: string): SecretValue {
  const { data, stringData } = (raw ?? {}) as { data?: unknown; stringData?: unknown };
  for (const map of [data, stringData]) if (!isMapping(map)) return unusable('has data that is no mapping');
  const plain = (stringData as Mapping | null | undefined)?.[key] ?? null;
  const encoded = (data as Mapping | null | undefined)?.[key] ?? null;
  // As the API server does: what is written plainly wins.
  const value = plain ?? encoded;
  if (value === null || value === '') return NO_VALUE;
  if (typeof value !== 'string') return unusable(`has a ${key} that is no text`);
  if (value.length > MAX_VALUE_BYTES * 2) return tooLong(key);
  const bytes = plain === null ? decodeBase64(value) : Buffer.from(value);
  if (bytes === undefined) return unusable(`has a ${key} that is not base64; write it under stringData as it is`);
  if (bytes.length > MAX_VALUE_BYTES) return tooLong(key);
  return bytes.length === 0 ? NO_VALUE : { kind: 'text', text: bytes.toString('latin1') };
}

type Mapping = Readonly<Record<string, unknown>>;

function isMapping(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'object' && !Array.isArray(value));
}

function tooLong(key: string): UnusableSecret {
  return unusable(`has a ${key} of more than ${MAX_VALUE_BYTES / 1024} KiB`);
}

/** RFC 4648, section 4, with line breaks. */
function decodeBase64(text: string): Buffer | undefined {
  const digits = text.replaceAll(/[\r\n]/g, '');
  return digits.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(digits) ? Buffer.from(digits, 'base64') : undefined;
}
