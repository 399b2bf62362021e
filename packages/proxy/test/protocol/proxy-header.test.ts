import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProxyHeaderParseResult } from '../../src/protocol/proxy-header.ts';
import { parseProxyHeader } from '../../src/protocol/read-proxy-header.ts';
import { writeProxyHeader } from '../../src/protocol/write-proxy-header.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const line = (text: string): 'more' | ProxyHeaderParseResult => parseProxyHeader(Buffer.from(text, 'latin1'));
const binary = (hex: string): 'more' | ProxyHeaderParseResult => parseProxyHeader(Buffer.from(SIGNATURE + hex, 'hex'));
const why = (read: 'more' | ProxyHeaderParseResult): string =>
  read !== 'more' && read.kind === 'invalid' ? read.why : 'none';
const V4 = { source: { address: '192.0.2.1', port: 56_324 }, destination: { address: '198.51.100.1', port: 443 } };
const MIXED = { source: { address: '192.0.2.1', port: 1 }, destination: { address: '2001:db8::1', port: 2 } };

test('accepts the longest lines with unicast addresses', () => {
  for (const text of [
    'PROXY TCP4 223.255.255.255 223.255.255.254 65535 65535\r\n',
    `PROXY TCP6 2fff${':ffff'.repeat(7)} 2fff${':ffff'.repeat(7)} 65535 65535\r\n`,
  ]) {
    const read = line(text);
    assert.ok(read !== 'more' && read.kind === 'header', text);
    assert.equal(read.header.length, text.length);
  }
});

test('refuses a line without CRLF at its 107th byte', () => {
  const endless = `PROXY TCP4 ${' '.repeat(200)}`;
  assert.equal(line(endless.slice(0, 106)), 'more');
  assert.equal(why(line(endless.slice(0, 107))), 'too-long');
});

test('names the fault of an invalid v1 line', () => {
  const faults = {
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n': 'line-end',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\rX': 'line-end',
    'PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n': 'protocol',
    'PROXY UNKNOWNS\r\n': 'protocol',
    'PROXYTCP4 192.0.2.1 192.0.2.2 1 2\r\n': 'protocol',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n': 'fields',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n': 'fields',
    'PROXY TCP4 192.0.2.1 192.0.2.256 1 2\r\n': 'address',
    'PROXY TCP4 192.0.2.1 0x7f.0.0.1 1 2\r\n': 'address',
    'PROXY TCP6 fe80::1%eth0 2001:db8::1 1 2\r\n': 'address',
    'PROXY TCP6 2001:db8::1 192.0.2.1 1 2\r\n': 'address',
    'PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n': 'port',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n': 'port',
    'PROXY TCP4 255.255.255.255 192.0.2.2 1 2\r\n': 'not-unicast',
    'PROXY TCP6 :: 2001:db8::1 1 2\r\n': 'not-unicast',
    'PROXY TCP6 ::ffff:224.0.0.1 2001:db8::1 1 2\r\n': 'not-unicast',
  };
  for (const [text, fault] of Object.entries(faults)) assert.equal(why(line(text)), fault, text);
});

test('names the fault of an invalid v2 header at the first wrong byte', () => {
  const faults = {
    '11': 'version',
    '31': 'version',
    '22': 'command',
    '2110': 'family',
    '2123': 'family',
    '2111000b': 'too-short',
    '21310014': 'too-short',
    '2111000f010203040102030500010002050001': 'tlv',
    '2111000e01020304010203050001000205ff': 'tlv',
    '21110012010203040102030500010002030003aabbcc': 'checksum',
    '21110013010203040102030500010002030004deadbeef': 'checksum',
    '2111000ce0000001010203050001000a': 'not-unicast',
  };
  for (const [hex, fault] of Object.entries(faults)) {
    assert.equal(why(binary(hex)), fault, hex);
    if (hex.length <= 8) assert.equal(binary(hex.slice(0, -2)), 'more', hex);
  }
});

test('a header for Unix sockets or an unspecified family has no addresses', () => {
  const unix = binary(`213100d8${'61'.repeat(216)}`);
  const unspecified = binary('21000004ffffffff');
  for (const read of [unix, unspecified]) {
    assert.ok(read !== 'more' && read.kind === 'header');
    assert.equal(read.header.addresses, null);
  }
});

test('does not wait for more bytes after the first byte that cannot begin a header', () => {
  for (const text of ['G', 'PROXI', 'PRX', '\r\n\r\nGET', '\x16\x03\x01'])
    assert.deepEqual(line(text), { kind: 'none' }, text);
  for (const text of ['', 'P', 'PROXY', '\r\n\r\n\0\r\nQUIT']) assert.equal(line(text), 'more', text);
});

test('writes the v1 lines of the specification', () => {
  const text = (content: Parameters<typeof writeProxyHeader>[1]): string =>
    Buffer.from(writeProxyHeader('v1', content)).toString('latin1');
  assert.equal(text(V4), 'PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n');
  assert.equal(text(MIXED), 'PROXY TCP6 ::ffff:c000:201 2001:db8::1 1 2\r\n');
});

test('writes addresses of two families as IPv6, with the IPv4 address mapped', () => {
  const hex = Buffer.from(writeProxyHeader('v2', MIXED)).toString('hex');
  assert.equal(hex, `${SIGNATURE}21210024${'00'.repeat(10)}ffffc0000201${'20010db8'}${'00'.repeat(11)}0100010002`);
});

test('writes a header without addresses if an address is unknown, and removes a zone', () => {
  for (const version of ['v1', 'v2'] as const) {
    const unknown = parseProxyHeader(writeProxyHeader(version, { ...V4, source: { address: '', port: 0 } }));
    assert.ok(unknown !== 'more' && unknown.kind === 'header');
    assert.equal(unknown.header.addresses, null);
    const withZone = { ...MIXED, source: { address: 'fe80::1%eth0', port: 1 } };
    const read = parseProxyHeader(writeProxyHeader(version, withZone));
    assert.ok(read !== 'more' && read.kind === 'header');
    assert.equal(read.header.addresses?.source.address, 'fe80::1');
  }
});

test('throws if the TLVs do not fit into a header', () => {
  assert.throws(() => writeProxyHeader('v2', { ...V4, authority: 'a'.repeat(65_530) }), RangeError);
});
