// X.509 v3 certificates (RFC 5280) for tests. Node reads them and makes none; with a few lines of DER and its own keys a test needs no
// program, no files, and can have one that ended yesterday.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { bits, identifier, integer, nothing, octets, sequence, set, tagged, time, utf8, yes } from './der.ts';

export interface CertificateOptions {
  /** The common name. */
  readonly name: string;
  /** DNS names and IP addresses that it is for; default: the name, and of an authority none. */
  readonly names?: readonly string[];
  /** Default: it is signed by its own key. */
  readonly issuer?: Certificate;
  /** Whether it may issue others. */
  readonly isAuthority?: boolean;
  /** Default: both. */
  readonly usage?: 'server' | 'client';
  /** Default `ec` (P-256). */
  readonly key?: 'ec' | 'rsa';
  /** Of an RSA key; default 2,048. */
  readonly bits?: number;
  /** Default: an hour ago. */
  readonly notBefore?: Date;
  /** Default: `days` after it began. */
  readonly notAfter?: Date;
  /** Default 30. */
  readonly days?: number;
}

export interface Certificate {
  readonly name: string;
  /** PEM of this one alone. */
  readonly certificate: string;
  /** PEM of this one and of those that issued it, as a server shows them: without one that signed itself, unless it is this. */
  readonly chain: string;
  /** PEM (PKCS #8). */
  readonly key: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly issuer: Certificate | undefined;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** A new one each time, with a key of its own. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const { name, issuer, days = 30, notBefore = new Date(Date.now() - HOUR_MS) } = options;
  const { notAfter = new Date(notBefore.getTime() + days * DAY_MS) } = options;
  const { privateKey, publicKey } = makeKeys(options);
  const signer = issuer ?? { name, privateKey, publicKey };
  const algorithm = algorithmOf(signer.privateKey);
  const content = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    nameOf(signer.name),
    sequence(time(notBefore), time(notAfter)),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensionsOf(options, { publicKey, signerKey: signer.publicKey }))),
  );
  const der = sequence(content, algorithm, bits(sign('sha256', content, signer.privateKey)));
  const certificate = pemOf(der);
  const above = issuer?.issuer === undefined ? '' : issuer.chain;
  return {
    name,
    certificate,
    chain: certificate + above,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    privateKey,
    publicKey,
    issuer,
  };
}

function makeKeys({ key = 'ec', bits: modulusLength = 2048 }: CertificateOptions): {
  privateKey: KeyObject;
  publicKey: KeyObject;
} {
  return key === 'rsa'
    ? generateKeyPairSync('rsa', { modulusLength })
    : generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

/** SHA-256 with what the key is for: RFC 5758, RFC 4055. */
function algorithmOf(key: KeyObject): Buffer {
  return key.asymmetricKeyType === 'rsa'
    ? sequence(identifier('1.2.840.113549.1.1.11'), nothing)
    : sequence(identifier('1.2.840.10045.4.3.2'));
}

function nameOf(commonName: string): Buffer {
  return sequence(set(sequence(identifier('2.5.4.3'), utf8(commonName))));
}

/** Bits of keyUsage: digitalSignature and keyEncipherment, or keyCertSign and cRLSign. */
const OF_AN_END = bits(Buffer.from([0xa0]), 5);
const OF_AN_AUTHORITY = bits(Buffer.from([0x06]), 1);
const PURPOSES = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' };

interface Keys {
  readonly publicKey: KeyObject;
  readonly signerKey: KeyObject;
}

function extensionsOf(
  { name, names, isAuthority = false, usage }: CertificateOptions,
  { publicKey, signerKey }: Keys,
): Buffer[] {
  const alternatives = names ?? (isAuthority ? [] : [name]);
  const purposes = usage === undefined ? Object.values(PURPOSES) : [PURPOSES[usage]];
  return [
    extension('2.5.29.19', sequence(...(isAuthority ? [yes] : [])), 'critical'),
    extension('2.5.29.15', isAuthority ? OF_AN_AUTHORITY : OF_AN_END, 'critical'),
    ...(isAuthority ? [] : [extension('2.5.29.37', sequence(...purposes.map(identifier)))]),
    ...(alternatives.length === 0 ? [] : [extension('2.5.29.17', sequence(...alternatives.map(alternativeOf)))]),
    // Two authorities of one name are told apart by these.
    extension('2.5.29.14', octets(idOf(publicKey))),
    extension('2.5.29.35', sequence(tagged(0x80, idOf(signerKey)))),
  ];
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  return sequence(identifier(id), ...(critical === undefined ? [] : [yes]), octets(value));
}

function alternativeOf(name: string): Buffer {
  return isIP(name) === 0 ? tagged(0x82, Buffer.from(name)) : tagged(0x87, addressBytes(name));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((each) => Number.parseInt(each, 16));
  const gap = new Array<number>(8 - groups(head).length - groups(tail).length).fill(0);
  return Buffer.from([...groups(head), ...gap, ...groups(tail)].flatMap((each) => [each >> 8, each & 0xff]));
}

function idOf(key: KeyObject): Buffer {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20);
}

function pemOf(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
