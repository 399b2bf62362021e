import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { type CertificateEntry, certificateId } from '@weir/model';
import { type CertificateOptions, makeCertificate } from '@weir/testkit';
import { certificateRequestIn, chooseCertificate } from '../../src/protocol/choose-certificate.ts';
import { certificateEntryFor } from '../fixtures/certificates.ts';
import { captureNodeClientHello, clientHelloRecord } from './client-hello-bytes.ts';

const entryFor = (index: number, options: CertificateOptions): CertificateEntry => ({
  kind: 'certificate',
  id: certificateId('uid', index),
  service: 'uid',
  ...certificateEntryFor(makeCertificate(options)),
});

const SHOP = ['shop.example', '*.shop.example'];
const ecdsa = entryFor(0, { name: 'shop', names: SHOP });
const rsa = entryFor(1, { name: 'shop', names: SHOP, keyType: 'rsa' });
const game = entryFor(2, { name: 'game', names: ['game.example'] });
const gameRsa = entryFor(3, { name: 'game', names: ['game.example'], keyType: 'rsa' });

async function chosen(certificates: readonly CertificateEntry[], client: ConnectionOptions): Promise<unknown> {
  const request = certificateRequestIn(await captureNodeClientHello(client));
  assert.ok(request);
  return chooseCertificate(certificates, request)?.id;
}

const TLS_1_2 = { maxVersion: 'TLSv1.2' } as const;

describe('of an ECDSA and an RSA certificate with the same names', () => {
  const cases: readonly [client: string, options: ConnectionOptions, expected: CertificateEntry][] = [
    ['a TLS 1.3 client that accepts both', {}, ecdsa],
    ['a TLS 1.3 client that accepts RSA only', { sigalgs: 'rsa_pss_rsae_sha256' }, rsa],
    [
      'a TLS 1.3 client that accepts ECDSA only with another curve',
      { sigalgs: 'ecdsa_secp384r1_sha384:RSA-PSS+SHA256' },
      rsa,
    ],
    ['a TLS 1.2 client that accepts both', TLS_1_2, ecdsa],
    ['a TLS 1.2 client without ECDSA cipher suites', { ...TLS_1_2, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }, rsa],
    ['a TLS 1.2 client without ECDSA signatures', { ...TLS_1_2, sigalgs: 'RSA+SHA256' }, rsa],
    ['a TLS 1.2 client without the curve', { ...TLS_1_2, ecdhCurve: 'P-384' }, rsa],
    ['a TLS 1.2 client with RSA-PSS only', { ...TLS_1_2, sigalgs: 'RSA-PSS+SHA256' }, rsa],
    ['a client that accepts neither', { sigalgs: 'ed25519' }, ecdsa],
  ];
  for (const [client, options, expected] of cases)
    test(`${client} gets the ${expected === rsa ? 'RSA' : 'ECDSA'} certificate`, async () => {
      assert.equal(await chosen([ecdsa, rsa], { servername: 'shop.example', ...options }), expected.id);
    });

  test('the first Secret is preferred', async () => {
    assert.equal(await chosen([rsa, ecdsa], { servername: 'shop.example' }), rsa.id);
  });
});

describe('of certificates for several hosts', () => {
  const all = [ecdsa, game, gameRsa, rsa];
  const rsaOnly = { sigalgs: 'rsa_pss_rsae_sha256' };
  test('the one with the requested name is chosen, by wildcards too', async () => {
    assert.equal(await chosen(all, { servername: 'game.example' }), game.id);
    assert.equal(await chosen(all, { servername: 'GAME.example', ...rsaOnly }), gameRsa.id);
    assert.equal(await chosen(all, { servername: 'a.shop.example' }), ecdsa.id);
    assert.equal(await chosen(all, { servername: 'a.shop.example', ...rsaOnly }), rsa.id);
  });

  test('the first names are chosen without a server name, and for an unknown one', async () => {
    for (const servername of ['other.example', 'a.b.shop.example', '']) {
      assert.equal(await chosen(all, { servername }), ecdsa.id);
      assert.equal(await chosen(all, { servername, ...rsaOnly }), rsa.id);
    }
  });

  test('a damaged certificate is never chosen before a good one', async () => {
    const damaged = { ...game, chain: 'damaged' };
    assert.equal(await chosen([damaged, game], { servername: 'game.example' }), game.id);
    assert.equal(await chosen([damaged], { servername: 'game.example' }), damaged.id);
  });
});

test('a ClientHello without signature algorithms gets the first certificate', () => {
  const request = certificateRequestIn(clientHelloRecord({ extensions: [] }));
  assert.equal(chooseCertificate([rsa, ecdsa], request)?.id, rsa.id);
  assert.equal(chooseCertificate([], request), undefined);
});

test('malformed lists of signature algorithms and groups are no certificate request', () => {
  for (const type of [10, 13])
    for (const data of [Buffer.of(0, 3, 4, 3, 5), Buffer.of(0, 0), Buffer.of(0, 2, 4, 3, 9)])
      assert.equal(certificateRequestIn(clientHelloRecord({ extensions: [[type, data]] })), undefined);
});
