import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { Sealer, Secret } from '@weir/runtime';
import { type Certificate, makeCertificate, makeOcspResponse, type OcspResponseOptions } from '@weir/testkit';
import { ocspValidityOf } from '../../src/parse/ocsp-response.ts';
import { parseSecret } from '../../src/parse/secret.ts';

const SEALER = new Sealer(new Secret('the secret of the fleet of the tests'));
const root = makeCertificate({ name: 'root', isAuthority: true });
const [ecdsa, rsa] = (['ec', 'rsa'] as const).map((keyType) => makeCertificate({ name: 'web', issuer: root, keyType }));
assert.ok(ecdsa && rsa);
const thisUpdate = new Date('2026-01-01T00:00:00Z');
const nextUpdate = new Date('2026-01-08T12:34:56Z');

const serialOf = ({ certificate }: Certificate): string => new X509Certificate(certificate).serialNumber;

/** Returns the OCSP response that the controller reads from a Secret with this certificate and this `tls.ocsp`. */
function ocspOf({ chain, key }: Certificate, response: Uint8Array | string): unknown {
  const data = { 'tls.crt': chain, 'tls.key': key };
  const { object } = parseSecret(
    {
      metadata: { name: 'tls', namespace: 'shop' },
      data: {
        ...Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
        'tls.ocsp': typeof response === 'string' ? response : Buffer.from(response).toString('base64'),
      },
    },
    SEALER,
  );
  assert.equal(object?.certificate?.kind, 'good');
  return object.certificate.kind === 'good' ? object.certificate.ocsp : undefined;
}

test('reads the response for the certificate of the Secret, with its validity', () => {
  for (const certificate of [ecdsa, rsa]) {
    const response = makeOcspResponse(certificate, { thisUpdate, nextUpdate });
    assert.deepEqual(ocspOf(certificate, response), {
      response: response.toString('base64'),
      thisUpdate: thisUpdate.getTime(),
      nextUpdate: nextUpdate.getTime(),
    });
  }
});

test('ignores a response that cannot be stapled, and still reads the certificate', () => {
  const of = (options: OcspResponseOptions): Buffer => makeOcspResponse(ecdsa, { thisUpdate, nextUpdate, ...options });
  const unusable: readonly (Uint8Array | string)[] = [
    makeOcspResponse(rsa),
    of({ status: 'revoked' }),
    of({ nextUpdate: null }),
    of({}).subarray(0, -100),
    Buffer.from('3003 0a0106'.replace(' ', ''), 'hex'),
    Buffer.concat([of({}), Buffer.alloc(10_000)]),
    'not base64!',
    '',
  ];
  for (const response of unusable) assert.equal(ocspOf(ecdsa, response), undefined);
});

test('throws for no damaged response', () => {
  const good = makeOcspResponse(ecdsa, { thisUpdate, nextUpdate });
  for (let at = 0; at < good.length; at += 1) {
    ocspValidityOf(good.subarray(0, at), serialOf(ecdsa));
    for (const value of [0, 0x30, 0x7f, 0x80, 0x83, 0xff]) {
      const damaged = Buffer.from(good);
      damaged[at] = value;
      ocspValidityOf(damaged, serialOf(ecdsa));
    }
  }
});
