// Makes X.509 v3 certificates (RFC 5280) for tests, including expired certificates. Node cannot make certificates. This
// module encodes them itself, so tests need neither openssl(1) nor files.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import {
  bitString,
  booleanTrue,
  nullValue,
  objectIdentifier,
  octetString,
  positiveInteger,
  sequence,
  setOf,
  taggedValue,
  time,
  utf8String,
} from './der.ts';

export interface CertificateOptions {
  /** The common name. */
  readonly name: string;
  /** DNS names and IP addresses of the subject. Default: `name`, or no names for an authority. */
  readonly names?: readonly string[];
  /** The authority that signs the certificate. By default the certificate is self-signed. */
  readonly issuer?: Certificate;
  /** Whether the certificate may issue other certificates. */
  readonly isAuthority?: boolean;
  /** The extended key usage. Default: server and client. */
  readonly usage?: 'server' | 'client';
  /** Default: `ec`, with the curve P-256. */
  readonly keyType?: 'ec' | 'rsa';
  /** The size of an RSA key in bits. Default: 2,048. */
  readonly rsaBits?: number;
  /** Default: one hour ago. */
  readonly notBefore?: Date;
  /** Default: `days` after `notBefore`. */
  readonly notAfter?: Date;
  /** The validity in days, unless `notAfter` is given. Default: 30. */
  readonly days?: number;
}

export interface Certificate {
  readonly name: string;
  /** PEM of this certificate without its issuers. */
  readonly certificate: string;
  /**
   * PEM of this certificate and its issuers, as a server presents them. The self-signed root is left out, unless this
   * certificate is the root.
   */
  readonly chain: string;
  /** The private key as PEM (PKCS #8). */
  readonly key: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly issuer: Certificate | undefined;
  /** The serial number, as a positive integer in DER. */
  readonly serialNumber: Buffer;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Makes a certificate with a new key pair. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const { name, issuer, days = 30, notBefore = new Date(Date.now() - HOUR_MS) } = options;
  const { notAfter = new Date(notBefore.getTime() + days * DAY_MS) } = options;
  const { privateKey, publicKey } = generateKeys(options);
  const signer = issuer ?? { name, privateKey, publicKey };
  const algorithm = signatureAlgorithm(signer.privateKey);
  const serialNumber = positiveInteger(Buffer.concat([Buffer.from([1]), randomBytes(15)]));
  const content = sequence(
    taggedValue(0xa0, positiveInteger(Buffer.from([2]))),
    serialNumber,
    algorithm,
    distinguishedName(signer.name),
    sequence(time(notBefore), time(notAfter)),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    taggedValue(0xa3, sequence(...extensionsFor(options, { publicKey, signerKey: signer.publicKey }))),
  );
  const der = sequence(content, algorithm, bitString(sign('sha256', content, signer.privateKey)));
  const certificate = pemEncode(der);
  const issuerChain = issuer?.issuer === undefined ? '' : issuer.chain;
  return {
    name,
    certificate,
    chain: certificate + issuerChain,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    privateKey,
    publicKey,
    issuer,
    serialNumber,
  };
}

function generateKeys({ keyType = 'ec', rsaBits: modulusLength = 2048 }: CertificateOptions): {
  privateKey: KeyObject;
  publicKey: KeyObject;
} {
  return keyType === 'rsa'
    ? generateKeyPairSync('rsa', { modulusLength })
    : generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

/**
 * Returns the identifier of the signature algorithm: SHA-256 with RSA (RFC 4055) or with ECDSA (RFC 5758), depending on
 * the key.
 */
export function signatureAlgorithm(key: KeyObject): Buffer {
  return key.asymmetricKeyType === 'rsa'
    ? sequence(objectIdentifier('1.2.840.113549.1.1.11'), nullValue)
    : sequence(objectIdentifier('1.2.840.10045.4.3.2'));
}

export function distinguishedName(commonName: string): Buffer {
  return sequence(setOf(sequence(objectIdentifier('2.5.4.3'), utf8String(commonName))));
}

/** The keyUsage bits digitalSignature and keyEncipherment. */
const LEAF_KEY_USAGE = bitString(Buffer.from([0xa0]), 5);
/** The keyUsage bits keyCertSign and cRLSign. */
const AUTHORITY_KEY_USAGE = bitString(Buffer.from([0x06]), 1);
const EXTENDED_KEY_USAGES = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' };

interface KeyPairs {
  readonly publicKey: KeyObject;
  readonly signerKey: KeyObject;
}

function extensionsFor(
  { name, names, isAuthority = false, usage }: CertificateOptions,
  { publicKey, signerKey }: KeyPairs,
): Buffer[] {
  const alternatives = names ?? (isAuthority ? [] : [name]);
  const purposes = usage === undefined ? Object.values(EXTENDED_KEY_USAGES) : [EXTENDED_KEY_USAGES[usage]];
  return [
    extension('2.5.29.19', sequence(...(isAuthority ? [booleanTrue] : [])), 'critical'),
    extension('2.5.29.15', isAuthority ? AUTHORITY_KEY_USAGE : LEAF_KEY_USAGE, 'critical'),
    ...(isAuthority ? [] : [extension('2.5.29.37', sequence(...purposes.map(objectIdentifier)))]),
    ...(alternatives.length === 0
      ? []
      : [extension('2.5.29.17', sequence(...alternatives.map(subjectAlternativeName)))]),
    // The key identifiers distinguish two authorities with the same name.
    extension('2.5.29.14', octetString(keyIdentifier(publicKey))),
    extension('2.5.29.35', sequence(taggedValue(0x80, keyIdentifier(signerKey)))),
  ];
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  return sequence(objectIdentifier(id), ...(critical === undefined ? [] : [booleanTrue]), octetString(value));
}

function subjectAlternativeName(name: string): Buffer {
  return isIP(name) === 0 ? taggedValue(0x82, Buffer.from(name)) : taggedValue(0x87, addressBytes(name));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((each) => Number.parseInt(each, 16));
  const gap = new Array<number>(8 - groups(head).length - groups(tail).length).fill(0);
  return Buffer.from([...groups(head), ...gap, ...groups(tail)].flatMap((each) => [each >> 8, each & 0xff]));
}

function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20);
}

function pemEncode(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
