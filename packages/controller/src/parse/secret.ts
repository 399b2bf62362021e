import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { CertificatePair, ClientAuthorities, SecretObject, UnusableObject } from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { DNS_LABEL, DNS_SUBDOMAIN } from './fields.ts';
import { ocspValidityOf } from './ocsp-response.ts';
import { type ParseResult, parseObject } from './parse-object.ts';

/** Reads only tls.crt, tls.key, tls.ocsp and ca.crt of a Secret, and seals the private key at once. */
export function parseSecret(raw: unknown, sealer: Sealer): ParseResult<SecretObject> {
  return parseObject('Secret', raw, (fields) => {
    const metadata = fields.object('metadata');
    const pair = {
      chain: readSecretValue(raw, 'tls.crt'),
      key: readSecretValue(raw, 'tls.key'),
      ocsp: readSecretValue(raw, 'tls.ocsp'),
    };
    return {
      namespace: metadata.requiredText('namespace', DNS_LABEL),
      name: metadata.requiredText('name', DNS_SUBDOMAIN),
      certificate: readCertificatePair(pair, sealer),
      authorities: readAuthorities(readSecretValue(raw, 'ca.crt')),
    };
  });
}

/** Reads the CAs in a `ca.crt`. Returns null if there is no value. */
export function readAuthorities(value: SecretValue): ClientAuthorities | UnusableObject | null {
  if (value.kind === 'none') return null;
  if (value.kind === 'unusable') return value;
  const certificates = readCertificates(value.text, 'ca.crt');
  if (certificates.kind === 'unusable') return certificates;
  const { list } = certificates;
  // A certificate that is not a CA certificate would verify no client, and the user could not find out why.
  const nonCa = list.findIndex((each) => !each.ca);
  if (nonCa >= 0) return unusableObject(`has a ca.crt whose certificate ${nonCa + 1} is not a CA certificate`);
  return Object.freeze({ kind: 'good', certificates: list.map(String).join('') });
}

export interface SecretPair {
  /** The value of `tls.crt`. */
  readonly chain: SecretValue;
  /** The value of `tls.key`. */
  readonly key: SecretValue;
  /** The value of `tls.ocsp`: an OCSP response in DER. */
  readonly ocsp?: SecretValue;
}

/** Reads the server certificate and seals its private key. Returns null if the Secret has neither a certificate nor a key. */
export function readCertificatePair(
  { chain, key, ocsp = NO_VALUE }: SecretPair,
  sealer: Sealer,
): CertificatePair | UnusableObject | null {
  if (chain.kind === 'unusable') return chain;
  if (key.kind === 'unusable') return key;
  if (chain.kind === 'none') return key.kind === 'none' ? null : unusableObject('has a tls.key but no tls.crt');
  if (key.kind === 'none') return unusableObject('has a tls.crt but no tls.key');
  const certificates = readCertificates(chain.text, 'tls.crt');
  if (certificates.kind === 'unusable') return certificates;
  const { list } = certificates;
  const read = readPrivateKey(key.text);
  if (read.kind === 'unusable') return read;
  const { privateKey } = read;
  const owner = list.findIndex((each) => each.checkPrivateKey(privateKey));
  if (owner < 0) return unusableObject('has a tls.key that does not belong to its tls.crt');
  if (owner > 0)
    return unusableObject(
      `has a tls.crt in which certificate ${owner + 1} belongs to the tls.key; put this certificate first, followed by the intermediate certificates`,
    );
  const pem = { chain: list.map(String).join(''), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  const refusal = openSslErrorFor(pem);
  if (refusal !== undefined) return unusableObject(`has a certificate that OpenSSL refuses: ${refusal}`);
  const keyDigest = publicKeyDigest(list[0].publicKey);
  return Object.freeze({
    kind: 'good',
    chain: pem.chain,
    keyDigest,
    sealedKey: sealer.seal(pem.key, keyDigest),
    ...validityPeriodOf(list),
    ...ocspResponseOf(ocsp, list[0]),
  });
}

/** The maximum size of a stapled response. Most have 500 bytes; with the certificate of the responder they have 2 KB. */
const MAX_OCSP_BYTES = 8 * 1024;

/**
 * Returns the OCSP response, if it says that the certificate is good. Another response is ignored: after a renewal, the Secret may
 * hold the response for the previous certificate, and the new certificate must be used anyway.
 */
function ocspResponseOf(value: SecretValue, { serialNumber }: X509Certificate): Pick<CertificatePair, 'ocsp'> {
  if (value.kind !== 'text' || value.text.length > MAX_OCSP_BYTES) return {};
  const response = Buffer.from(value.text, 'latin1');
  const validity = ocspValidityOf(response, serialNumber);
  return validity === undefined ? {} : { ocsp: Object.freeze({ response: response.toString('base64'), ...validity }) };
}

/**
 * The length of the longest RSA key that is accepted. Each handshake makes a signature in a worker that also serves other clients,
 * and the time for a signature grows with the cube of the key's length.
 */
const MAX_RSA_BITS = 4_096;
const KEY_TYPES: readonly (string | undefined)[] = ['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448'];
/**
 * The accepted curves P-256, P-384 and P-521, by their names in OpenSSL. No other curves are allowed for signatures in TLS 1.3 (RFC
 * 8446, 4.2.3). OpenSSL loads keys on other curves, but then every handshake fails.
 */
const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/** The digests of RSA-PSS in TLS, and the length of each digest in bytes. The salt is as long as the digest (RFC 8446, 4.2.3). */
const PSS_DIGESTS: ReadonlyMap<string, number> = new Map([
  ['sha256', 32],
  ['sha384', 48],
  ['sha512', 64],
]);

function readPrivateKey(text: string): { readonly kind: 'key'; readonly privateKey: KeyObject } | UnusableObject {
  if (/^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text))
    return unusableObject('has a tls.key that is encrypted; use a key without a passphrase');
  if (!text.includes('PRIVATE KEY-----'))
    return unusableObject('has a tls.key that does not contain a PEM private key (-----BEGIN PRIVATE KEY-----)');
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(text);
  } catch {
    return unusableObject('has a tls.key that is damaged or of an unknown type');
  }
  const why = unsupportedKeyReason(privateKey);
  return why === undefined ? { kind: 'key', privateKey } : unusableObject(why);
}

function unsupportedKeyReason({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): string | undefined {
  if (!KEY_TYPES.includes(asymmetricKeyType))
    return `has a tls.key of type ${asymmetricKeyType}; use ECDSA, RSA or Ed25519`;
  const { modulusLength = 0, namedCurve, hashAlgorithm, saltLength = 0 } = asymmetricKeyDetails;
  if (modulusLength > MAX_RSA_BITS)
    return `has an RSA key of ${modulusLength} bits; use at most ${MAX_RSA_BITS}, or ECDSA`;
  if (asymmetricKeyType === 'ec' && !CURVES.includes(namedCurve))
    return `has a tls.key on ${namedCurve ?? 'an unnamed curve'}, which TLS clients do not accept; use P-256, P-384 or P-521`;
  if (hashAlgorithm !== undefined && (PSS_DIGESTS.get(hashAlgorithm) ?? -1) < saltLength)
    return `has an RSA-PSS key for ${hashAlgorithm} with ${saltLength} bytes of salt, which TLS cannot use; use a key without restrictions, or ECDSA`;
  return undefined;
}

/**
 * Loads the pair with OpenSSL, as the proxies do. Returns why OpenSSL refuses the pair, for example because the key is too short;
 * undefined if OpenSSL accepts the pair.
 */
function openSslErrorFor({ chain, key }: { readonly chain: string; readonly key: string }): string | undefined {
  try {
    // Without `ca`, Node would load the CA certificates of the system.
    createSecureContext({ cert: chain, key, ca: [] });
    return undefined;
  } catch (error) {
    // The reason is one of OpenSSL's constant texts, so it contains no part of the key.
    const { reason } = error as { reason?: unknown };
    return typeof reason === 'string' ? reason : 'OpenSSL gives no reason';
  }
}

function publicKeyDigest(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
}

/**
 * Returns the period in which the server certificate and its issuer are both valid. Ignores further certificates, because a client
 * may not need them: for example, an expired cross-signed root whose key the client trusts anyway.
 */
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

/**
 * The maximum number of certificates in one value of a Secret. The number is limited because the controller reads all certificates
 * and every proxy keeps them.
 */
const MAX_CERTIFICATES = 20;
const PEM_BEGIN = '-----BEGIN CERTIFICATE-----';
const PEM_END = '-----END CERTIFICATE-----';

/**
 * Reads the certificates of a Secret's value. Ignores text between the certificates, such as comments or a private key. `key` names
 * the value, such as `tls.crt`.
 */
export function readCertificates(text: string, key: string): PemCertificates | UnusableObject {
  const blocks = pemBlocksIn(text);
  if (blocks.length > MAX_CERTIFICATES)
    return unusableObject(
      `has more than ${MAX_CERTIFICATES} certificates in its ${key}; remove the ones that are not needed`,
    );
  const list: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    const certificate = block.endsWith(PEM_END) ? readCertificate(block) : undefined;
    if (certificate === undefined)
      return unusableObject(`has a ${key} whose certificate ${index + 1} is damaged or cut off`);
    list.push(certificate);
  }
  const [first, ...others] = list;
  return first === undefined
    ? unusableObject(`has a ${key} that does not contain a PEM certificate (${PEM_BEGIN})`)
    : { kind: 'certificates', list: [first, ...others] };
}

export function unusableObject(why: string): UnusableObject {
  return Object.freeze({ kind: 'unusable', why });
}

/** Returns the PEM blocks in the text, but at most `MAX_CERTIFICATES` + 1. A block without an end mark extends to the end of the text. */
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

export type SecretValue = { readonly kind: 'none' } | { readonly kind: 'text'; readonly text: string } | UnusableObject;
/** The maximum size of a value. Longer values are refused. Leaves about 3 KiB for each of `MAX_CERTIFICATES` certificates. */
const MAX_VALUE_BYTES = 64 * 1024;
const NO_VALUE: SecretValue = { kind: 'none' };

/**
 * Reads a value of a Secret from a manifest or an API server. Does not use `Fields`, because `Fields` quotes wrong values in its
 * messages, and no message may contain anything from a Secret.
 */
export function readSecretValue(raw: unknown, key: string): SecretValue {
  const { data, stringData } = (raw ?? {}) as { data?: unknown; stringData?: unknown };
  for (const map of [data, stringData]) if (!isMapping(map)) return unusableObject('has data that is not a mapping');
  const plain = (stringData as Mapping | null | undefined)?.[key] ?? null;
  const encoded = (data as Mapping | null | undefined)?.[key] ?? null;
  // As in the API server, `stringData` takes precedence over `data`.
  const value = plain ?? encoded;
  if (value === null || value === '') return NO_VALUE;
  if (typeof value !== 'string') return unusableObject(`has a ${key} that is not text`);
  if (value.length > MAX_VALUE_BYTES * 2) return tooLongValue(key);
  const bytes = plain === null ? decodeBase64(value) : Buffer.from(value);
  if (bytes === undefined)
    return unusableObject(`has a ${key} that is not base64; encode the value, or write it under stringData`);
  if (bytes.length > MAX_VALUE_BYTES) return tooLongValue(key);
  return bytes.length === 0 ? NO_VALUE : { kind: 'text', text: bytes.toString('latin1') };
}

type Mapping = Readonly<Record<string, unknown>>;

function isMapping(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'object' && !Array.isArray(value));
}

function tooLongValue(key: string): UnusableObject {
  return unusableObject(`has a ${key} of more than ${MAX_VALUE_BYTES / 1024} KiB`);
}

/** Decodes base64 (RFC 4648, section 4) with optional line breaks. Returns undefined if the text is not base64. */
function decodeBase64(text: string): Buffer | undefined {
  const digits = text.replaceAll(/[\r\n]/g, '');
  return digits.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(digits) ? Buffer.from(digits, 'base64') : undefined;
}
