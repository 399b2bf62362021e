// Chooses one of several certificates of a Service for a client. Each certificate has a TLS context of its own, so OpenSSL
// cannot choose. With one context per certificate, a session ticket belongs to one certificate, and so does a staple.
import { type KeyObject, X509Certificate } from 'node:crypto';
import type { CertificateEntry } from '@weir/model/data-plane';
import { type CertificateRequest, parseCertificateRequest } from './client-hello.ts';
import { ClientHelloReader } from './client-hello-reader.ts';

/**
 * Returns the certificate for a client. The candidates are the certificates that match the server name (RFC 9525 §6.3),
 * or, if none matches, the certificates with the same names as the first certificate. Returns the first candidate with
 * a key that the client accepts, or the first candidate if the client accepts no key. Returns undefined only if there
 * are no certificates.
 */
export function chooseCertificate(
  certificates: readonly CertificateEntry[],
  request: CertificateRequest | undefined,
): CertificateEntry | undefined {
  const [first] = certificates;
  if (first === undefined || certificates.length === 1 || request === undefined) return first;
  const { serverName } = request;
  const named = certificates.filter((entry) => serverName !== null && matchesName(entry, serverName));
  const { subjectAltName } = traitsOf(first).certificate ?? {};
  const candidates =
    named.length > 0
      ? named
      : certificates.filter((entry) => traitsOf(entry).certificate?.subjectAltName === subjectAltName);
  return candidates.find((entry) => isKeyAccepted(traitsOf(entry), request)) ?? candidates[0];
}

/** Whether one of the certificates contains the server name (RFC 9525 §6.3). */
export function hasCertificateFor(certificates: readonly CertificateEntry[], serverName: string): boolean {
  return certificates.some((entry) => matchesName(entry, serverName));
}

/** Reads the ClientHello at the start of the bytes that were read from a client. Returns undefined if there is none. */
export function certificateRequestIn(prereadBytes: Uint8Array): CertificateRequest | undefined {
  const reader = new ClientHelloReader();
  const result = reader.push(prereadBytes);
  return result !== 'more' && result.kind === 'hello' ? parseCertificateRequest(reader.body) : undefined;
}

/** The properties by which a certificate is chosen. Parsed when they are first needed. */
interface CertificateTraits {
  /** Undefined if the certificate cannot be parsed. Such a certificate fits no client. */
  readonly certificate: X509Certificate | undefined;
  readonly key: KeyKind | undefined;
}

const TRAITS = new WeakMap<CertificateEntry, CertificateTraits>();

function traitsOf(entry: CertificateEntry): CertificateTraits {
  const known = TRAITS.get(entry);
  if (known !== undefined) return known;
  const traits = parseTraits(entry);
  TRAITS.set(entry, traits);
  return traits;
}

function parseTraits({ chain }: CertificateEntry): CertificateTraits {
  try {
    const certificate = new X509Certificate(chain);
    return { certificate, key: keyKindOf(certificate.publicKey) };
  } catch {
    return { certificate: undefined, key: undefined };
  }
}

function matchesName(entry: CertificateEntry, serverName: string): boolean {
  const options = { subject: 'never', partialWildcards: false } as const;
  return traitsOf(entry).certificate?.checkHost(serverName, options) !== undefined;
}

interface KeyKind {
  /** The signature schemes that the key can use in TLS 1.3 (RFC 8446 §4.2.3). */
  readonly schemes: readonly number[];
  /** The signature schemes that the key can use in TLS 1.2. */
  readonly oldSchemes: readonly number[];
  /** The cipher suites that the proxies offer in TLS 1.2 and that the key can use. */
  readonly suites: readonly number[];
  /** The group of an ECDSA key. Undefined for other keys. */
  readonly group: number | undefined;
}

/** ECDHE_ECDSA with AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305 (RFC 5289 §3.2, RFC 7905 §2). */
const ECDSA_SUITES = [0xc02b, 0xc02c, 0xcca9];
/** ECDHE_RSA with the same ciphers. */
const RSA_SUITES = [0xc02f, 0xc030, 0xcca8];
const ECDSA_SCHEMES = [0x0403, 0x0503, 0x0603];
const PSS_SCHEMES = [0x0804, 0x0805, 0x0806];

/** The signature scheme of TLS 1.3 and the group of each curve, by OpenSSL's name of the curve. */
const CURVES: Readonly<Record<string, readonly [scheme: number, group: number]>> = {
  prime256v1: [0x0403, 23],
  secp384r1: [0x0503, 24],
  secp521r1: [0x0603, 25],
};
const KEY_KINDS: Readonly<Record<string, KeyKind>> = {
  rsa: {
    schemes: PSS_SCHEMES,
    oldSchemes: [...PSS_SCHEMES, 0x0401, 0x0501, 0x0601],
    suites: RSA_SUITES,
    group: undefined,
  },
  'rsa-pss': restricted([0x0809, 0x080a, 0x080b], RSA_SUITES),
  ed25519: restricted([0x0807], ECDSA_SUITES),
  ed448: restricted([0x0808], ECDSA_SUITES),
};

function restricted(schemes: readonly number[], suites: readonly number[]): KeyKind {
  return { schemes, oldSchemes: schemes, suites, group: undefined };
}

function keyKindOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): KeyKind | undefined {
  if (asymmetricKeyType !== 'ec') return KEY_KINDS[asymmetricKeyType ?? ''];
  const curve = CURVES[asymmetricKeyDetails?.namedCurve ?? ''];
  if (curve === undefined) return undefined;
  const [scheme, group] = curve;
  return { schemes: [scheme], oldSchemes: ECDSA_SCHEMES, suites: ECDSA_SUITES, group };
}

const TLS_1_3 = 0x0304;

function isKeyAccepted({ key }: CertificateTraits, request: CertificateRequest): boolean {
  if (key === undefined) return false;
  const { versions, cipherSuites, signatureAlgorithms, groups } = request;
  // RFC 8446 §4.2.3: in TLS 1.3, an ECDSA scheme names the curve of the key.
  if (versions.includes(TLS_1_3)) return key.schemes.some((scheme) => signatureAlgorithms.includes(scheme));
  if (!key.suites.some((suite) => cipherSuites.includes(suite))) return false;
  // RFC 8422 §5.1: the curve of the key must be one of the client's groups, if the client names groups.
  if (key.group !== undefined && groups.length > 0 && !groups.includes(key.group)) return false;
  return key.oldSchemes.some((scheme) => signatureAlgorithms.includes(scheme));
}
