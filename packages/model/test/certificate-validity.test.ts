import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certificateValidityFor, type SecretObject } from '@weir/model';

const DAY = 86_400_000;

function secret(notBefore: number, notAfter: number): SecretObject {
  const certificate = {
    kind: 'good',
    chain: 'chain',
    keyDigest: 'digest',
    sealedKey: 'key',
    notBefore,
    notAfter,
  } as const;
  return { namespace: 'shop', name: 'tls', certificate, authorities: null };
}

function at(now: number, ...secrets: SecretObject[]): [validity: string | undefined, nextAt: number | undefined] {
  const { validity, nextChangeAt } = certificateValidityFor(secrets, now);
  return [validity.get('shop/tls'), nextChangeAt];
}

test('a certificate of a year is expiring two weeks before its end', () => {
  const year = secret(0, 365 * DAY);
  assert.deepEqual(at(-1, year), ['early', 0]);
  assert.deepEqual(at(0, year), [undefined, 351 * DAY]);
  assert.deepEqual(at(351 * DAY - 1, year), [undefined, 351 * DAY]);
  assert.deepEqual(at(351 * DAY, year), ['expiring', 365 * DAY + 1_000]);
  assert.deepEqual(at(365 * DAY, year), ['expiring', 365 * DAY + 1_000], 'it is good in the second in which it ends');
  assert.deepEqual(at(365 * DAY + 1_000, year), ['expired', undefined]);
});

test('a certificate of ten days is expiring in its last fifth', () => {
  assert.deepEqual(at(8 * DAY - 1, secret(0, 10 * DAY)), [undefined, 8 * DAY]);
  assert.deepEqual(at(8 * DAY, secret(0, 10 * DAY)), ['expiring', 10 * DAY + 1_000]);
});

test('Secrets without a usable certificate have no validity', () => {
  const bad: SecretObject = { ...secret(0, 1), certificate: { kind: 'unusable', why: 'is no certificate' } };
  assert.deepEqual(at(5 * DAY, bad, { ...bad, certificate: null }), [undefined, undefined]);
});

test('the next change is the earliest of all certificates', () => {
  const other: SecretObject = { ...secret(0, 10 * DAY), name: 'other' };
  assert.deepEqual(at(1, secret(0, 365 * DAY), other), [undefined, 8 * DAY]);
});
