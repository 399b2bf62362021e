import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProxyHeaderParseResult } from '../../src/protocol/proxy-header.ts';
import { createProxyHeaderReader } from '../../src/protocol/read-proxy-header.ts';
import type { SocketAddress } from '../../src/transport/tcp-transport.ts';
import { PROXY_HEADER_VECTORS, type ProxyHeaderVector } from './proxy-header-vectors.ts';

interface Outcome {
  readonly found: 'more' | ProxyHeaderParseResult;
  readonly payload: string;
}

/** As a connection would bring it; the segments are overwritten after each push, as a shared read buffer would be. */
function read(bytes: Uint8Array, chunks: readonly number[]): Outcome {
  const reader = createProxyHeaderReader();
  let at = 0;
  for (const size of chunks) {
    const segment = new Uint8Array(bytes.subarray(at, at + size));
    const found = reader.push(segment);
    if (found !== 'more') {
      segment.fill(0x58);
      if (found.kind !== 'header') return { found, payload: '' };
      const { consumed, ...read } = found;
      return { found: read, payload: Buffer.from(bytes.subarray(at + consumed)).toString('latin1') };
    }
    segment.fill(0x58);
    at += size;
  }
  return { found: 'more', payload: '' };
}

const whole = ({ bytes }: ProxyHeaderVector): Outcome => read(bytes, [bytes.length]);

function textOf({ address, port }: SocketAddress): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

test('there are 63 vectors', () => {
  assert.equal(PROXY_HEADER_VECTORS.length, 63);
});

for (const vector of PROXY_HEADER_VECTORS) {
  test(`${vector.id}: ${vector.expect}`, () => judge(vector, whole(vector)));
}

function judge(vector: ProxyHeaderVector, { found, payload }: Outcome): void {
  switch (vector.expect) {
    case 'close':
    case 'close-or-skip':
      assert.ok(found !== 'more' && found.kind !== 'header', JSON.stringify(found));
      return;
    case 'close-no-upstream':
    case 'close-on-header-timeout':
      assert.equal(found, 'more');
      return;
    case 'accept-parse':
      // They are as long as can be, and name addresses that no client has.
      assert.deepEqual(found, { kind: 'invalid', why: 'not-unicast' });
      return;
    case 'accept-real-peer':
      assert.ok(found !== 'more' && found.kind === 'header', JSON.stringify(found));
      assert.equal(found.header.addresses, null);
      break;
    case 'accept':
    case 'accept-policy':
    case 'accept-then-http-400': {
      assert.ok(found !== 'more' && found.kind === 'header', JSON.stringify(found));
      const { addresses } = found.header;
      assert.ok(addresses);
      assert.equal(textOf(addresses.source), vector.src);
      if (vector.dst !== undefined) assert.equal(textOf(addresses.destination), vector.dst);
      break;
    }
    default:
      assert.fail(`nobody knows what ${vector.expect} means`);
  }
  if (vector.payload !== undefined) assert.equal(payload, vector.payload);
}

const CUT_EVERYWHERE = PROXY_HEADER_VECTORS.filter(({ bytes }) => bytes.length < 1_000);

test('every vector reads the same when it is cut in two anywhere', () => {
  for (const vector of CUT_EVERYWHERE) {
    const expected = whole(vector);
    for (let at = 1; at < vector.bytes.length; at += 1) {
      assert.deepEqual(read(vector.bytes, [at, vector.bytes.length - at]), expected, `${vector.id} cut at ${at}`);
    }
  }
});

test('every vector reads the same byte by byte', () => {
  for (const vector of PROXY_HEADER_VECTORS) {
    assert.deepEqual(read(vector.bytes, new Array(vector.bytes.length).fill(1)), whole(vector), vector.id);
  }
});

test('vectors that were sent in pieces read the same in those', () => {
  const pieces = PROXY_HEADER_VECTORS.filter(({ chunks }) => chunks !== undefined);
  assert.ok(pieces.length >= 5);
  for (const vector of pieces) assert.deepEqual(read(vector.bytes, vector.chunks ?? []), whole(vector), vector.id);
});

test('the largest header reads the same when it is cut near its beginning and its end', () => {
  const largest = PROXY_HEADER_VECTORS.find(({ id }) => id === 'v2-max-length-65535');
  assert.ok(largest);
  const expected = whole(largest);
  for (const at of [1, 12, 13, 14, 15, 16, 17, 28, 31, 40_000, 65_550, 65_551, 65_552]) {
    assert.deepEqual(read(largest.bytes, [at, largest.bytes.length - at]), expected, `cut at ${at}`);
  }
});
