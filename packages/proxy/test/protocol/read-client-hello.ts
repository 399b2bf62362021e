import assert from 'node:assert/strict';
import type { ClientHello } from '../../src/protocol/client-hello.ts';
import { ClientHelloReader, type ClientHelloReadResult } from '../../src/protocol/client-hello-reader.ts';

/**
 * Reads `bytes` in segments of these sizes and a last segment with the rest, and returns the result. Overwrites each
 * segment after the push.
 */
export function readSegments(bytes: Uint8Array, sizes: readonly number[] = []): 'more' | ClientHelloReadResult {
  const reader = new ClientHelloReader();
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    const segment = new Uint8Array(bytes.subarray(at, at + size));
    at += segment.length;
    const found = reader.push(segment);
    segment.fill(0xee);
    assert.ok(Buffer.from(bytes).subarray(0, at).equals(reader.bytes), 'the reader keeps all bytes for the endpoint');
    if (found !== 'more') return found;
  }
  return 'more';
}

export function expectHello(bytes: Uint8Array): ClientHello {
  const found = readSegments(bytes);
  assert.ok(found !== 'more' && found.kind === 'hello', JSON.stringify(found));
  return found.hello;
}

export function faultOf(bytes: Uint8Array): string {
  const found = readSegments(bytes);
  return found === 'more' ? found : found.kind === 'refused' ? found.why : 'none';
}
