import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProxyHeaderParseResult } from '../../src/protocol/proxy-header.ts';
import { ProxyHeaderReader } from '../../src/protocol/read-proxy-header.ts';
import type { SocketAddress } from '../../src/transport/tcp-transport.ts';
import { PROXY_HEADER_VECTORS, type ProxyHeaderVector } from './proxy-header-vectors.ts';

interface Outcome {
  readonly found: 'more' | ProxyHeaderParseResult;
  readonly payload: string;
}

/**
 * Reads `bytes` in segments of these sizes. Overwrites each segment after the push, as a transport overwrites its
 * shared read buffer.
 */
function readSegments(bytes: Uint8Array, sizes: readonly number[]): Outcome {
  const reader = new ProxyHeaderReader();
  let at = 0;
  for (const size of sizes) {
    const segment = new Uint8Array(bytes.subarray(at, at + size));
    const found = reader.push(segment);
    if (found !== 'more') {
      segment.fill(0x58);
      if (found.kind !== 'header') return { found, payload: '' };
      const { consumed, ...result } = found;
      return { found: result, payload: Buffer.from(bytes.subarray(at + consumed)).toString('latin1') };
    }
    segment.fill(0x58);
    at += size;
  }
  return { found: 'more', payload: '' };
}

const readWhole = ({ bytes }: ProxyHeaderVector): Outcome => readSegments(bytes, [bytes.length]);

function textOf({ address, port }: SocketAddress): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

test('there are 63 vectors', () => {
  assert.equal(PROXY_HEADER_VECTORS.length, 63);
});

for (const vector of PROXY_HEADER_VECTORS) {
  test(`${vector.id}: ${vector.expect}`, () => assertExpected(vector, readWhole(vector)));
}

function assertExpected(vector: ProxyHeaderVector, { found, payload }: Outcome): void {
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
      // These vectors are lines of the maximum length. Only addresses such as 255.255.255.255 are so long, and they are
      // not unicast.
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
      assert.fail(`unknown expectation ${vector.expect}`);
  }
  if (vector.payload !== undefined) assert.equal(payload, vector.payload);
}

const CUT_EVERYWHERE = PROXY_HEADER_VECTORS.filter(({ bytes }) => bytes.length < 1_000);

test('every vector gives the same result in any two segments', () => {
  for (const vector of CUT_EVERYWHERE) {
    const expected = readWhole(vector);
    for (let at = 1; at < vector.bytes.length; at += 1) {
      assert.deepEqual(
        readSegments(vector.bytes, [at, vector.bytes.length - at]),
        expected,
        `${vector.id} cut at ${at}`,
      );
    }
  }
});

test('every vector gives the same result byte by byte', () => {
  for (const vector of PROXY_HEADER_VECTORS) {
    assert.deepEqual(readSegments(vector.bytes, new Array(vector.bytes.length).fill(1)), readWhole(vector), vector.id);
  }
});

test('vectors with segments give the same result in these segments', () => {
  const segmented = PROXY_HEADER_VECTORS.filter(({ chunks }) => chunks !== undefined);
  assert.ok(segmented.length >= 5);
  for (const vector of segmented)
    assert.deepEqual(readSegments(vector.bytes, vector.chunks ?? []), readWhole(vector), vector.id);
});

test('the largest header gives the same result when it is cut near its beginning or end', () => {
  const largest = PROXY_HEADER_VECTORS.find(({ id }) => id === 'v2-max-length-65535');
  assert.ok(largest);
  const expected = readWhole(largest);
  for (const at of [1, 12, 13, 14, 15, 16, 17, 28, 31, 40_000, 65_550, 65_551, 65_552]) {
    assert.deepEqual(readSegments(largest.bytes, [at, largest.bytes.length - at]), expected, `cut at ${at}`);
  }
});
