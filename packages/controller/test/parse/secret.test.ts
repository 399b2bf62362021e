import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import type { SecretObject } from '@weir/model';
import { Sealer, Secret } from '@weir/runtime';
import { makeCertificate } from '@weir/testkit';
import { parseSecret } from '../../src/parse/secret.ts';

const sealer = new Sealer(new Secret('a secret of this fleet, long enough'));
const root = makeCertificate({ name: 'root', isAuthority: true });
const between = makeCertificate({ name: 'between', isAuthority: true, issuer: root });
const server = makeCertificate({ name: 'shop.example.com', issuer: between });
const stranger = makeCertificate({ name: 'shop.example.com', issuer: between });

type Values = Readonly<Record<string, string>>;

const inBase64 = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));

function parsed(content: object): SecretObject {
  const { object, problems } = parseSecret({ metadata: { namespace: 'shop', name: 'tls' }, ...content }, sealer);
  assert.deepEqual(problems, []);
  assert.ok(object);
  return object;
}

const secretOf = (values: Values): SecretObject => parsed({ data: inBase64(values) });
const good = { 'tls.crt': server.chain, 'tls.key': server.key };

function unusableReason({ certificate }: SecretObject): string {
  assert.equal(certificate?.kind, 'unusable');
  return certificate.why;
}

test('reads a certificate with chain and key, and seals the key with the fleet secret', () => {
  const { certificate, authorities } = secretOf({ ...good, password: 'ignored' });
  assert.equal(certificate?.kind, 'good');
  assert.equal(certificate.chain, server.certificate + between.certificate);
  const spki = server.publicKey.export({ type: 'spki', format: 'der' });
  assert.equal(certificate.keyDigest, createHash('sha256').update(spki).digest('base64url'));
  assert.equal(sealer.open(certificate.sealedKey, certificate.keyDigest), server.key);
  assert.equal(authorities, null);
});

test('keeps only certificates and the sealed key of a Secret', () => {
  const key = server.key.split('\n')[1] ?? '';
  const chain = `comment\n${server.key}${server.chain}${server.key}`;
  const text = JSON.stringify(
    secretOf({ 'tls.crt': chain, 'tls.key': server.key, 'ca.crt': `${server.key}${root.chain}` }),
  );
  assert.ok(!text.includes(key));
  assert.ok(!text.includes('comment'));
  assert.equal(secretOf({ 'tls.crt': chain, 'tls.key': server.key }).certificate?.kind, 'good');
});

test('reads PKCS #1, SEC 1 and PKCS #8 keys, and seals equal keys as equal text', () => {
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n';
  const sec1 = parameters + server.privateKey.export({ type: 'sec1', format: 'pem' });
  assert.deepEqual(secretOf({ 'tls.crt': server.chain, 'tls.key': sec1 }), secretOf(good));
  const rsa = makeCertificate({ name: 'rsa', keyType: 'rsa' });
  const pkcs1 = rsa.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  assert.equal(secretOf({ 'tls.crt': rsa.chain, 'tls.key': pkcs1 }).certificate?.kind, 'good');
});

const at = (text: string): Date => new Date(`${text}T00:00:00Z`);

test('is valid while the certificate and its issuer are valid', () => {
  const life = { notBefore: at('2026-03-01'), notAfter: at('2026-05-01') };
  const issuer = makeCertificate({ name: 'short', isAuthority: true, issuer: root, ...life });
  const made = makeCertificate({ name: 'x', issuer, notBefore: at('2026-01-01'), notAfter: at('2027-01-01') });
  const { certificate } = secretOf({ 'tls.crt': made.chain, 'tls.key': made.key });
  assert.equal(certificate?.kind, 'good');
  assert.equal(new Date(certificate.notBefore).toISOString(), at('2026-03-01').toISOString());
  assert.equal(new Date(certificate.notAfter).toISOString(), at('2026-05-01').toISOString());
});

test('ignores the validity of certificates behind the issuer, which clients with the root do not need', () => {
  const over = { notBefore: at('2020-01-01'), notAfter: at('2021-01-01') };
  const old = makeCertificate({ name: 'old root', isAuthority: true, ...over });
  const life = { notBefore: at('2026-01-01'), notAfter: at('2027-01-01') };
  const lifeOf = (chain: string): number | undefined => {
    const { certificate } = secretOf({ 'tls.crt': chain, 'tls.key': made.key });
    return certificate?.kind === 'good' ? certificate.notAfter : undefined;
  };
  const issuer = makeCertificate({ name: 'issuer', isAuthority: true, issuer: root, ...life });
  const made = makeCertificate({ name: 'x', issuer, ...life });
  const crossSigned = makeCertificate({ name: 'root', isAuthority: true, issuer: old, ...over });
  assert.equal(lifeOf(made.chain + crossSigned.certificate + old.certificate), life.notAfter.getTime());
});

test('reads one or more client CAs, whatever else the Secret contains', () => {
  const { certificate, authorities } = secretOf({
    'ca.crt': `# ours\n${root.certificate}# theirs\n${between.certificate}`,
  });
  assert.equal(certificate, null);
  assert.deepEqual(authorities, { kind: 'good', certificates: root.certificate + between.certificate });
});

test('a Secret without certificates is known to exist', () => {
  assert.deepEqual(secretOf({ password: 'x' }), {
    namespace: 'shop',
    name: 'tls',
    certificate: null,
    authorities: null,
  });
  assert.deepEqual(parsed({}), secretOf({ password: 'x' }));
  assert.deepEqual(parsed({ data: null }), secretOf({ 'tls.crt': '', 'tls.key': '' }));
});

test('prefers stringData to data, as an API server does', () => {
  assert.deepEqual(parsed({ stringData: good, data: inBase64({ ...good, 'tls.key': 'old' }) }), secretOf(good));
});

describe('an unusable Secret has a reason', () => {
  const encrypted = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const;
  const dsa = generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey;
  const weak = makeCertificate({ name: 'weak', keyType: 'rsa', rsaBits: 1024 });
  const sha1 = { hashAlgorithm: 'sha1', mgf1HashAlgorithm: 'sha1' } as const;
  const keyOf = ({ privateKey }: { privateKey: KeyObject }): string =>
    privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const slow = makeCertificate({ name: 'slow', keyType: 'rsa', rsaBits: 4104 });
  const cases: Readonly<Record<string, readonly [Values, string]>> = {
    'no key': [{ 'tls.crt': server.chain }, 'has a tls.crt but no tls.key'],
    'no certificate': [{ 'tls.crt': '', 'tls.key': server.key }, 'has a tls.key but no tls.crt'],
    'no PEM': [
      { ...good, 'tls.crt': 'MIIB' },
      'has a tls.crt that does not contain a PEM certificate (-----BEGIN CERTIFICATE-----)',
    ],
    'a certificate in DER': [
      { ...good, 'tls.crt': new X509Certificate(server.certificate).raw.toString('latin1') },
      'has a tls.crt that does not contain a PEM certificate (-----BEGIN CERTIFICATE-----)',
    ],
    'a damaged certificate': [
      { ...good, 'tls.crt': server.certificate + between.certificate.replace('MII', 'MI#') },
      'has a tls.crt whose certificate 2 is damaged or cut off',
    ],
    'a certificate that is cut off': [
      { ...good, 'tls.crt': server.certificate.slice(0, -30) },
      'has a tls.crt whose certificate 1 is damaged or cut off',
    ],
    'too many certificates': [
      { ...good, 'tls.crt': server.certificate.repeat(21) },
      'has more than 20 certificates in its tls.crt; remove the ones that are not needed',
    ],
    'a certificate that is too long': [
      { ...good, 'tls.crt': server.certificate + '\n'.repeat(64 * 1024) },
      'has a tls.crt of more than 64 KiB',
    ],
    'a key that is far too long': [{ ...good, 'tls.key': 'x'.repeat(900 * 1024) }, 'has a tls.key of more than 64 KiB'],
    'the key of another certificate': [
      { ...good, 'tls.key': stranger.key },
      'has a tls.key that does not belong to its tls.crt',
    ],
    'its own certificate last': [
      { ...good, 'tls.crt': between.certificate + server.certificate },
      'has a tls.crt in which certificate 2 belongs to the tls.key; put this certificate first, followed by the intermediate certificates',
    ],
    'an encrypted key': [
      { ...good, 'tls.key': server.privateKey.export({ type: 'pkcs8', ...encrypted }).toString() },
      'has a tls.key that is encrypted; use a key without a passphrase',
    ],
    'an encrypted key in SEC 1': [
      { ...good, 'tls.key': server.privateKey.export({ type: 'sec1', ...encrypted }).toString() },
      'has a tls.key that is encrypted; use a key without a passphrase',
    ],
    'a certificate in place of the key': [
      { ...good, 'tls.key': server.certificate },
      'has a tls.key that does not contain a PEM private key (-----BEGIN PRIVATE KEY-----)',
    ],
    'a damaged key': [
      { ...good, 'tls.key': server.key.slice(0, 60) },
      'has a tls.key that is damaged or of an unknown type',
    ],
    'a DSA key': [
      { ...good, 'tls.key': dsa.export({ type: 'pkcs8', format: 'pem' }).toString() },
      'has a tls.key of type dsa; use ECDSA, RSA or Ed25519',
    ],
    'a key that is too short': [
      { 'tls.crt': weak.chain, 'tls.key': weak.key },
      'has a certificate that OpenSSL refuses: ee key too small',
    ],
    // OpenSSL loads these keys, and then fails each handshake.
    'a key on a curve that TLS does not use': [
      { ...good, 'tls.key': keyOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })) },
      'has a tls.key on secp256k1, which TLS clients do not accept; use P-256, P-384 or P-521',
    ],
    'a key that is restricted to SHA-1': [
      { ...good, 'tls.key': keyOf(generateKeyPairSync('rsa-pss', { modulusLength: 2048, ...sha1 })) },
      'has an RSA-PSS key for sha1 with 20 bytes of salt, which TLS cannot use; use a key without restrictions, or ECDSA',
    ],
    'a key that is too long': [
      { 'tls.crt': slow.chain, 'tls.key': slow.key },
      'has an RSA key of 4104 bits; use at most 4096, or ECDSA',
    ],
  };
  for (const [name, [values, why]] of Object.entries(cases)) {
    test(name, () => assert.equal(unusableReason(secretOf(values)), why));
  }

  test('values that are not base64 or not text, and data that is not a mapping', () => {
    const data = inBase64(good);
    assert.equal(
      unusableReason(parsed({ data: { ...data, 'tls.key': 'a-b=' } })),
      'has a tls.key that is not base64; encode the value, or write it under stringData',
    );
    assert.equal(unusableReason(parsed({ data: { ...data, 'tls.crt': 5 } })), 'has a tls.crt that is not text');
    assert.equal(unusableReason(parsed({ data: ['tls.crt'] })), 'has data that is not a mapping');
    assert.equal(unusableReason(parsed({ data, stringData: 'private' })), 'has data that is not a mapping');
  });

  test('a ca.crt without CA certificates', () => {
    const why = (text: string): unknown => secretOf({ 'ca.crt': text }).authorities;
    assert.deepEqual(why(root.certificate + server.certificate), {
      kind: 'unusable',
      why: 'has a ca.crt whose certificate 2 is not a CA certificate',
    });
    assert.deepEqual(why('ours'), {
      kind: 'unusable',
      why: 'has a ca.crt that does not contain a PEM certificate (-----BEGIN CERTIFICATE-----)',
    });
    assert.equal(secretOf({ ...good, 'ca.crt': 'ours' }).certificate?.kind, 'good');
  });
});

test('reports a wrong name of a Secret without its contents', () => {
  const { object, problems } = parseSecret({ metadata: { namespace: 'shop', name: 'A B' }, stringData: good }, sealer);
  assert.equal(object, undefined);
  assert.deepEqual(
    problems.map(({ code }) => code),
    ['InvalidObject'],
  );
  assert.match(JSON.stringify(problems), /metadata\.name is/);
  assert.doesNotMatch(JSON.stringify(problems), /BEGIN/);
});
