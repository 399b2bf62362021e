// Checks that compiled networks and parsed texts agree with ipaddr.js.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileNetworks, parseCidr } from '@weir/model';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { isWithin } from '../fixtures/linear-networks.ts';

/** Prefers a few values, so that networks are often nested, adjacent or equal, and addresses often lie at the edge of a network. */
const octet = fc.oneof(fc.constantFrom(0, 1, 127, 128, 254, 255), fc.nat(255));
const group = fc.oneof(fc.constantFrom(0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x2001, 0xdb8), fc.nat(0xffff));
const ipv4 = fc.array(octet, { minLength: 4, maxLength: 4 }).map((octets) => octets.join('.'));
const groups = fc.oneof(
  fc.array(group, { minLength: 8, maxLength: 8 }),
  fc.tuple(fc.nat(8), fc.array(group, { minLength: 8, maxLength: 8 })).map(([zeros, all]) => all.fill(0, 8 - zeros)),
  fc.tuple(fc.nat(8), fc.array(group, { minLength: 8, maxLength: 8 })).map(([zeros, all]) => all.fill(0, 0, zeros)),
);
const ipv6 = fc.tuple(groups, fc.constantFrom('rfc5952', 'normal', 'full', 'capital', 'mixed')).map(([all, form]) => {
  const address = new ipaddr.IPv6(all);
  if (form === 'normal') return address.toNormalizedString();
  if (form === 'full') return all.map((part) => part.toString(16).padStart(4, '0')).join(':');
  if (form === 'capital') return address.toString().toUpperCase();
  if (form === 'mixed')
    return `${address.parts
      .slice(0, 6)
      .map((part) => part.toString(16))
      .join(':')}:${dotted(all)}`;
  return address.toString();
});
const mapped = ipv4.map((address) => `::ffff:${address}`);
const addresses = fc.oneof({ weight: 4, arbitrary: ipv4 }, { weight: 4, arbitrary: ipv6 }, mapped);
const networks = fc.oneof(
  fc.tuple(ipv4, fc.nat(32)),
  fc.tuple(ipv6, fc.oneof(fc.nat(128), fc.constantFrom(0, 31, 32, 33, 64, 96, 127, 128))),
  fc.tuple(mapped, fc.integer({ min: 90, max: 128 })),
);
const cidrs = networks.map(([address, prefix]) => `${address}/${prefix}`);
/** Texts of characters that occur in addresses. Most of these texts are not addresses. */
const scraps = fc.oneof(
  fc.string({ unit: fc.constantFrom('0', '1', '9', 'f', 'F', ':', '::', '.', '%', ' '), maxLength: 12 }),
  fc
    .tuple(fc.oneof(ipv4, ipv6), fc.nat(40), fc.constantFrom('', ':', '.', '0', 'g', '%e', '::', '1'))
    .map(([text, at, scrap]) => text.slice(0, at) + scrap + text.slice(at + 1)),
);

function dotted(all: readonly number[]): string {
  return all
    .slice(6)
    .flatMap((part) => [part >> 8, part & 255])
    .join('.');
}

/** Returns the first and the last address of a network, and the two addresses just outside of the network. */
function edgesOf(text: string): string[] {
  const [address, prefix] = ipaddr.parseCIDR(text);
  const bytes = address.toByteArray();
  const size = BigInt(bytes.length * 8);
  const host = (1n << (size - BigInt(prefix))) - 1n;
  const value = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  const first = value & ~host;
  const last = value | host;
  return [first, last, first - 1n, last + 1n]
    .filter((each) => each >= 0n && each < 1n << size)
    .map((each) =>
      ipaddr.fromByteArray(bytes.map((_, i) => Number((each >> BigInt(8 * (bytes.length - 1 - i))) & 255n))).toString(),
    );
}

test('a network set contains an address if one of its networks does', () => {
  fc.assert(
    fc.property(fc.array(cidrs, { maxLength: 30 }), fc.array(addresses, { maxLength: 20 }), (all, asked) => {
      const compiled = compileNetworks(all);
      for (const address of [...asked, ...all.flatMap(edgesOf)])
        assert.equal(compiled.contains(address), isWithin(address, all), `${address} in ${all}`);
    }),
    { numRuns: 500 },
  );
});

test('a network set accepts every form of an address, and no other text', () => {
  const everything = ['0.0.0.0/0', '::/0'];
  const compiled = compileNetworks(everything);
  fc.assert(
    fc.property(fc.oneof(scraps, addresses), (text) => {
      assert.equal(compiled.contains(text), isWithin(text, everything), text);
    }),
    { numRuns: 5_000 },
  );
  for (const text of [
    '',
    ':',
    '::',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7:8:',
    ':1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
  ])
    assert.equal(compiled.contains(text), isWithin(text, everything), text);
});

test('an empty network set contains no address', () => {
  assert.equal(compileNetworks([]).isEmpty, true);
  assert.equal(compileNetworks(['nonsense']).isEmpty, true);
  assert.equal(compileNetworks(['10.0.0.0/8']).isEmpty, false);
  assert.equal(compileNetworks([]).contains('10.0.0.1'), false);
});

test('parseCidr returns the canonical text of ipaddr.js', () => {
  fc.assert(
    fc.property(cidrs, (text) => {
      const [, prefix] = ipaddr.parseCIDR(text);
      const family = text.includes(':') ? ipaddr.IPv6 : ipaddr.IPv4;
      const address = family.networkAddressFromCIDR(text).toString();
      assert.deepEqual(parseCidr(` ${text}\n`), { text: `${address}/${prefix}`, address, prefix });
    }),
    { numRuns: 2_000 },
  );
});

for (const text of [
  '10.0.0.0',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10/8',
  '010.0.0.0/8',
  '10.0.0.08/8',
  '::/129',
  '::ffff:010.0.0.0/104',
  '::ffff:1.02.0.0/104',
  'fe80::1%e/64',
  '/8',
  '10.0.0.0/',
  '1:2/16',
  '',
]) {
  test(`${JSON.stringify(text)} is not a CIDR`, () => assert.equal(parseCidr(text), undefined));
}

test('ignores leading zeros of IPv6 groups', () => {
  assert.equal(parseCidr('0064:ff9b::/96')?.text, '64:ff9b::/96');
  assert.equal(parseCidr('::0.0.0.0/128')?.text, '::ffff:0:0/128');
});
