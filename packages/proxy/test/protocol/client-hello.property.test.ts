import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { ClientHelloReader, MAX_CLIENT_HELLO_WIRE_BYTES } from '../../src/protocol/client-hello-reader.ts';
import { captureNodeClientHello, splitIntoRecords } from './client-hello-bytes.ts';
import { readSegments } from './read-client-hello.ts';

let hello: Buffer;

before(async () => {
  hello = await captureNodeClientHello({ servername: 'shop.example.com', ALPNProtocols: ['h2', 'http/1.1'] });
});

const edit = fc.record({ at: fc.nat(600), cut: fc.nat(3), put: fc.uint8Array({ maxLength: 3 }) });

/**
 * A real ClientHello, split into records of some size, with a few bytes changed, inserted or removed, and cut off at
 * some length.
 */
const streams = fc
  .tuple(fc.constantFrom(1, 5, 100, 10_000), fc.array(edit, { maxLength: 4 }), fc.nat(3_000))
  .map(([size, edits, length]) =>
    edits
      .reduce<Uint8Array>(
        (bytes, { at, cut, put }) => Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)]),
        splitIntoRecords(hello, size),
      )
      .subarray(0, length),
  );

test('any bytes give the same result in any segments, and never throw', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 20 });
  fc.assert(
    fc.property(fc.oneof(streams, fc.uint8Array()), sizes, (bytes, cuts) => {
      assert.deepEqual(readSegments(bytes, cuts), readSegments(bytes));
    }),
    { numRuns: 2_000 },
  );
});

test('a ClientHello with one changed byte never gives an invalid server name', () => {
  for (let at = 0; at < hello.length; at += 1) {
    for (const value of [0, 1, 0x7f, 0x80, 0xff, (hello[at] as number) ^ 1]) {
      const changed = Buffer.from(hello);
      changed[at] = value;
      const found = readSegments(changed);
      if (found !== 'more' && found.kind === 'hello') {
        assert.match(found.hello.serverName ?? '', /^([a-z0-9_-]+(\.[a-z0-9_-]+)*)?$/, `byte ${at}`);
      }
    }
  }
});

test('a reader that waits for more bytes never exceeds the limit', () => {
  fc.assert(
    fc.property(streams, fc.integer({ min: 1, max: 2_000 }), (bytes, size) => {
      const reader = new ClientHelloReader();
      for (let round = 0; round < 100_000; round += 1) {
        const at = (round * size) % Math.max(1, bytes.length);
        if (reader.push(bytes.subarray(at, at + size)) !== 'more') return;
        assert.ok(reader.bytes.length < MAX_CLIENT_HELLO_WIRE_BYTES);
        if (bytes.length === 0) return;
      }
      assert.fail('the reader never came to a result');
    }),
  );
});
