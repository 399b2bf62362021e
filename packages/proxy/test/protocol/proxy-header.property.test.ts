import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ProxyHeaderParseResult, TLV_TYPE } from '../../src/protocol/proxy-header.ts';
import {
  createProxyHeaderReader,
  type ProxyHeaderReadResult,
  parseProxyHeader,
} from '../../src/protocol/read-proxy-header.ts';
import { writeLocalProxyHeader, writeProxyHeader } from '../../src/protocol/write-proxy-header.ts';
import { PROXY_HEADER_VECTORS } from './proxy-header-vectors.ts';

const versions = fc.constantFrom('v1' as const, 'v2' as const);
const ipv4 = fc
  .tuple(fc.integer({ min: 1, max: 223 }), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((parts) => parts.join('.'));
/** As `new URL` writes them, an authority on canonical text that is not ours; none that is multicast or a mapped IPv4. */
const ipv6 = fc
  .array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 6, maxLength: 6 })
  .map((groups) =>
    new URL(`http://[2001:db8:${groups.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1),
  );
const end = fc.record({ address: fc.oneof(ipv4, ipv6), port: fc.nat(65_535) }, { noNullPrototype: true });
const contents = fc.record(
  {
    source: end,
    destination: end,
    uniqueId: fc.uint8Array({ maxLength: 128 }),
    authority: fc.domain(),
    alpn: fc.constantFrom('h2', 'http/1.1'),
    withChecksum: fc.boolean(),
  },
  { requiredKeys: ['source', 'destination'] },
);

function headerOf(
  read: 'more' | ProxyHeaderParseResult | ProxyHeaderReadResult,
): Extract<ProxyHeaderParseResult, { kind: 'header' }>['header'] {
  assert.ok(read !== 'more' && read.kind === 'header', JSON.stringify(read));
  return read.header;
}

test('what is written is read: the ends, also of two families, and in v2 what else was said', () => {
  fc.assert(
    fc.property(versions, contents, fc.uint8Array({ maxLength: 8 }), (version, content, payload) => {
      const bytes = writeProxyHeader(version, content);
      const header = headerOf(parseProxyHeader(Buffer.concat([bytes, payload])));
      assert.equal(header.length, bytes.length);
      assert.equal(header.command, 'PROXY');
      assert.deepEqual(header.addresses, { source: content.source, destination: content.destination });
      const isIpv6 = `${content.source.address}${content.destination.address}`.includes(':');
      assert.equal(header.family, isIpv6 ? 'TCP6' : 'TCP4');
      if (version === 'v1') return;
      const tlvOf = (type: number): Uint8Array | undefined => header.tlvs.find((tlv) => tlv.type === type)?.value;
      assert.deepEqual(tlvOf(TLV_TYPE.uniqueId), content.uniqueId);
      assert.equal(textOf(tlvOf(TLV_TYPE.authority)), content.authority);
      assert.equal(textOf(tlvOf(TLV_TYPE.alpn)), content.alpn);
      assert.equal(tlvOf(TLV_TYPE.crc32c) !== undefined, content.withChecksum === true);
    }),
  );
});

function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString();
}

test('a header that speaks for the proxy itself has no ends, in either version', () => {
  fc.assert(
    fc.property(versions, (version) => {
      const bytes = writeLocalProxyHeader(version);
      const header = headerOf(parseProxyHeader(bytes));
      assert.equal(header.addresses, null);
      assert.equal(header.length, bytes.length);
    }),
  );
});

/** Real headers with a few bytes changed, put in or taken out: nearer to the edges than bytes at random. */
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

test('once the answer is known it is the same for whatever follows, and in whatever segments the bytes came', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 10 }), (stream, sizes) => {
      const expected = parseProxyHeader(stream);
      for (let length = 0; length < stream.length; length += 1) {
        const early = parseProxyHeader(stream.subarray(0, length));
        if (early !== 'more') assert.deepEqual(early, expected);
      }
      const reader = createProxyHeaderReader();
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
