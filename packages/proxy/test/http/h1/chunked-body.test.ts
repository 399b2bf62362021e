import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ChunkedBody,
  MAX_CHUNK_EXTENSION_BYTES,
  MAX_TRAILER_BYTES,
  writeChunkHeader,
} from '../../../src/http/h1/chunked-body.ts';
import { MAX_FIELDS } from '../../../src/http/h1/head-fields.ts';
import { cutsOf, type ReadResult, readRequests } from './read-messages.ts';

const HEAD = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');
const read = (body: string): ReadResult => readRequests(bytesOf(HEAD + body));

const BODIES: readonly (readonly [body: string, data: string])[] = [
  ['0\r\n\r\n', ''],
  ['0000000000000000\r\n\r\n', ''],
  ['5\r\nhello\r\n0\r\n\r\n', 'hello'],
  ['A\r\n0123456789\r\na\r\n\r\n0\r\n\r\n123\r\n00\r\n\r\n', '0123456789\r\n0\r\n\r\n123'],
  ['1;a\r\nx\r\n0;b=c;d="e;\\""\r\n\r\n', 'x'],
  ['1 ; a = b \t; c = "d" ;e\r\nx\r\n0\r\n\r\n', 'x'],
];

test('each valid chunked body is read', () => {
  for (const [body, data] of BODIES) {
    const { messages, end } = read(body);
    assert.equal(end, 'end', body);
    assert.equal(messages[0]?.body, data, body);
  }
});

const REFUSED: readonly (readonly [body: string, refusal: string])[] = [
  ['\r\n', 'invalid-chunk-size'],
  [';a\r\n', 'invalid-chunk-size'],
  ['-1\r\n', 'invalid-chunk-size'],
  ['g\r\n', 'invalid-chunk-size'],
  ['1.\r\n', 'invalid-chunk-size'],
  ['1\n', 'invalid-line-ending'],
  ['1\r\r\n', 'invalid-line-ending'],
  ['20000000000000\r\n', 'chunk-size-too-large'],
  ['00000000000000000\r\n', 'chunk-size-too-large'],
  ['1 \r\n', 'invalid-chunk-extension'],
  ['1 a\r\n', 'invalid-chunk-extension'],
  ['1;\r\n', 'invalid-chunk-extension'],
  ['1;a \r\n', 'invalid-chunk-extension'],
  ['1;a=\r\n', 'invalid-chunk-extension'],
  ['1;a=b \r\n', 'invalid-chunk-extension'],
  ['1;a="b\r\n', 'invalid-chunk-extension'],
  ['1;a="\\\r\n', 'invalid-chunk-extension'],
  ['1;a="b"c\r\n', 'invalid-chunk-extension'],
  ['1;a=b"c"\r\n', 'invalid-chunk-extension'],
  ['1;a=\0\r\n', 'invalid-chunk-extension'],
  ['1;a\n', 'invalid-chunk-extension'],
  ['1;a\rb\r\n', 'invalid-line-ending'],
  ['1\r\nxy\r\n', 'invalid-chunk-ending'],
  ['1\r\nx\n', 'invalid-chunk-ending'],
  ['1\r\nx\r\r\n', 'invalid-chunk-ending'],
  ['0\r\n\rX', 'invalid-line-ending'],
  ['0\r\n\n', 'invalid-line-ending'],
  ['0\r\nX\r\n\r\n', 'invalid-field-name'],
  ['0\r\nX : 1\r\n\r\n', 'invalid-field-name'],
  ['0\r\nX: 1\r\n Y: 2\r\n\r\n', 'folded-field'],
  ['0\r\nX: \0\r\n\r\n', 'invalid-field-value'],
];

test('each invalid chunked body is refused, whole, at every split and byte by byte', () => {
  for (const [body, refusal] of REFUSED) {
    const whole = read(body);
    assert.equal(whole.end, refusal, JSON.stringify(body));
    const bytes = bytesOf(HEAD + body);
    for (const cuts of cutsOf(bytes)) assert.deepEqual(readRequests(bytes, cuts), whole, JSON.stringify(body));
  }
});

test('trailers are read into memory of their own', () => {
  const body = '1\r\nx\r\n0\r\nX-Sum: 1 \r\nx-two:\r\n\r\n';
  const bytes = bytesOf(`${HEAD}${body}${HEAD}0\r\n\r\n`);
  const whole = readRequests(bytes);
  assert.equal(whole.end, 'end');
  assert.deepEqual(
    whole.messages.map(({ trailers }) => trailers),
    [
      [
        ['X-Sum', '1'],
        ['x-two', ''],
      ],
      [],
    ],
  );
  for (const cuts of cutsOf(bytes)) assert.deepEqual(readRequests(bytes, cuts), whole);
});

/** Returns a trailer section of `size` bytes. */
const trailersOfSize = (size: number): string => `X: ${'v'.repeat(size - 'X: \r\n\r\n'.length)}\r\n\r\n`;

test('the limits of trailers and extensions are exact', () => {
  assert.equal(read(`0\r\n${trailersOfSize(MAX_TRAILER_BYTES)}`).end, 'end');
  assert.equal(read(`0\r\n${trailersOfSize(MAX_TRAILER_BYTES + 1)}`).end, 'trailers-too-large');
  assert.equal(read(`0\r\n${'X: 1\r\n'.repeat(MAX_FIELDS)}\r\n`).end, 'end');
  assert.equal(read(`0\r\n${'X: 1\r\n'.repeat(MAX_FIELDS + 1)}\r\n`).end, 'too-many-fields');
  // The limit applies to the sum over all chunks.
  const chunks = `1;${'a'.repeat(MAX_CHUNK_EXTENSION_BYTES / 8 - 1)}\r\nx\r\n`.repeat(8);
  assert.equal(read(`${chunks}0\r\n\r\n`).end, 'end');
  assert.equal(read(`${chunks}0;a\r\n\r\n`).end, 'chunk-extensions-too-large');
});

test('a chunk of the largest size is relayed in parts', () => {
  const body = new ChunkedBody();
  const size = bytesOf('1fffffffffffff\r\n');
  assert.equal(body.next(size, 0, size.length), 'more');
  const part = Buffer.alloc(1_000);
  for (let round = 0; round < 3; round += 1) {
    assert.equal(body.next(part, 10, 1_000), 'data');
    assert.deepEqual([body.dataStart, body.dataEnd, body.position], [10, 1_000, 1_000]);
  }
});

test('a chunk header is written and read again', () => {
  const memory = Buffer.alloc(32);
  for (const size of [0, 1, 9, 10, 15, 16, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
    const end = writeChunkHeader(memory, 3, size);
    assert.equal(memory.toString('latin1', 3, end), `${size.toString(16)}\r\n`);
  }
});
