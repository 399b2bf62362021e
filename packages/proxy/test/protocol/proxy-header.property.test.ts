import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ProxyHeaderParseResult, TLV_TYPE } from '../../src/protocol/proxy-header.ts';
import {
  ProxyHeaderReader,
  type ProxyHeaderReadResult,
  parseProxyHeader,
} from '../../src/protocol/read-proxy-header.ts';
import { writeLocalProxyHeader, writeProxyHeader } from '../../src/protocol/write-proxy-header.ts';
import { readTlvs } from './proxy-header-tlvs.ts';
import { PROXY_HEADER_VECTORS } from './proxy-header-vectors.ts';

const versions = fc.constantFrom('v1' as const, 'v2' as const);
const ipv4 = fc
  .tuple(fc.integer({ min: 1, max: 223 }), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((parts) => parts.join('.'));
/**
 * IPv6 addresses as canonical text. The text comes from `new URL`, because `formatIp` belongs to the tested code. None
 * of the addresses is multicast or an IPv4-mapped address.
 */
const ipv6 = fc
  .array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 6, maxLength: 6 })
  .map((groups) =>
    new URL(`http://[2001:db8:${groups.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1),
  );
const socketAddress = fc.record({ address: fc.oneof(ipv4, ipv6), port: fc.nat(65_535) }, { noNullPrototype: true });
const contents = fc.record(
  {
    source: socketAddress,
    destination: socketAddress,
    uniqueId: fc.uint8Array({ maxLength: 128 }),
    authority: fc.domain(),
    alpn: fc.constantFrom('h2', 'http/1.1'),
  },
  { requiredKeys: ['source', 'destination'] },
);

function headerOf(
  read: 'more' | ProxyHeaderParseResult | ProxyHeaderReadResult,
): Extract<ProxyHeaderParseResult, { kind: 'header' }>['header'] {
  assert.ok(read !== 'more' && read.kind === 'header', JSON.stringify(read));
  return read.header;
}

test('a written header has its addresses and, in v2, its TLVs when it is read', () => {
  fc.assert(
    fc.property(versions, contents, fc.uint8Array({ maxLength: 8 }), (version, content, payload) => {
      const bytes = writeProxyHeader(version, content);
      const header = headerOf(parseProxyHeader(Buffer.concat([bytes, payload])));
      assert.equal(header.length, bytes.length);
      assert.deepEqual(header.addresses, { source: content.source, destination: content.destination });
      if (version === 'v1') return;
      const tlvs = readTlvs(bytes);
      assert.equal(tlvs.get(TLV_TYPE.uniqueId)?.toString('hex'), hexOf(content.uniqueId));
      assert.equal(tlvs.get(TLV_TYPE.authority)?.toString(), content.authority);
      assert.equal(tlvs.get(TLV_TYPE.alpn)?.toString(), content.alpn);
    }),
  );
});

function hexOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString('hex');
}

test('the header of the proxy itself has no addresses in either version', () => {
  fc.assert(
    fc.property(versions, (version) => {
      const bytes = writeLocalProxyHeader(version);
      const header = headerOf(parseProxyHeader(bytes));
      assert.equal(header.addresses, null);
      assert.equal(header.length, bytes.length);
    }),
  );
});

/**
 * The headers of the test vectors, with a few bytes changed, inserted or removed. Such headers hit more edge cases than
 * random bytes.
 */
const mutated = fc
  .tuple(
    fc.constantFrom(...PROXY_HEADER_VECTORS.filter(({ bytes }) => bytes.length < 200).map(({ bytes }) => bytes)),
    fc.array(fc.record({ at: fc.nat(199), cut: fc.nat(2), put: fc.uint8Array({ maxLength: 2 }) }), { maxLength: 3 }),
  )
  .map(([bytes, edits]) =>
    edits.reduce<Uint8Array>(
      (text, { at, cut, put }) => Buffer.concat([text.subarray(0, at), put, text.subarray(at + cut)]),
      bytes,
    ),
  );
const streams = fc.oneof(mutated, fc.uint8Array({ maxLength: 40 }));

test('the result does not depend on later bytes or on the segments', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 10 }), (stream, sizes) => {
      const expected = parseProxyHeader(stream);
      for (let length = 0; length < stream.length; length += 1) {
        const early = parseProxyHeader(stream.subarray(0, length));
        if (early !== 'more') assert.deepEqual(early, expected);
      }
      const reader = new ProxyHeaderReader();
      let at = 0;
      for (const size of [...sizes, stream.length]) {
        const found = reader.push(stream.subarray(at, at + size));
        if (found !== 'more') {
          if (found.kind === 'header') assert.equal(at + found.consumed, found.header.length);
          assert.deepEqual({ ...found, consumed: 0 }, { ...(expected as object), consumed: 0 });
          return;
        }
        at += size;
      }
      assert.equal(expected, 'more');
    }),
    { numRuns: 1_000 },
  );
});
