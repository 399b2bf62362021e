// Checks that the fast path for IPv4 addresses agrees with ipaddr.js.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalAddress, isSpecialAddress } from '@weir/model';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';

const SPECIAL = ['loopback', 'linkLocal', 'unspecified', 'multicast', 'broadcast'];
const octet = fc.oneof(
  fc.nat(255),
  fc.constantFrom(0, 1, 9, 10, 99, 100, 127, 169, 199, 223, 224, 239, 240, 249, 254, 255),
);
const addresses = fc.tuple(octet, fc.oneof(octet, fc.constant(254)), octet, octet).map((octets) => octets.join('.'));

test('an IPv4 address is its own canonical text, and special if one of the ranges contains it', () => {
  fc.assert(
    fc.property(addresses, (address) => {
      assert.equal(canonicalAddress(address), address);
      assert.equal(isSpecialAddress(address), SPECIAL.includes(ipaddr.IPv4.parse(address).range()));
    }),
    { numRuns: 2_000 },
  );
});

for (const text of [
  '256.0.0.1',
  '1.2.3',
  '1.2.3.4.5',
  '01.2.3.4',
  '1.2.3.04',
  '1.2.3.4 ',
  ' 1.2.3.4',
  '1.2.3.4\n',
  '0x1.2.3.4',
  '1..2.3',
  '',
  '١.2.3.4',
]) {
  test(`${JSON.stringify(text)} is not an address, and is forbidden for endpoints`, () => {
    assert.equal(canonicalAddress(text), undefined);
    assert.equal(isSpecialAddress(text), true);
  });
}

test('an IPv4-mapped IPv6 address becomes the IPv4 address', () => {
  assert.equal(canonicalAddress('::ffff:10.0.0.1'), '10.0.0.1');
  assert.equal(isSpecialAddress('::ffff:127.0.0.1'), true);
});
