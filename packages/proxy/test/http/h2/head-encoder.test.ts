import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestHeadParser } from '../../../src/http/h1/request-head.ts';
import { type EncodedKind, encodeFields, encodeLines } from '../../../src/http/h2/head-encoder.ts';
import { HpackDecoder } from '../../../src/http/h2/hpack/decoder.ts';
import { HpackEncoder } from '../../../src/http/h2/hpack/encoder.ts';
import { CollectedFields, type Field } from './hpack/collected-fields.ts';

/** Returns what a peer decodes of the fields that `encode` adds. */
function fieldsOf(encode: (encoder: HpackEncoder) => void): readonly Field[] {
  const block = new Uint8Array(4_096);
  const encoder = new HpackEncoder();
  encoder.begin(block, 0);
  encode(encoder);
  const collected = new CollectedFields();
  assert.equal(new HpackDecoder().decode(block, 0, encoder.position, collected), 'done');
  return collected.fields;
}

const LINES =
  'Host: example.com\r\nConnection: TE\r\nKeep-Alive: 1\r\nTE: gzip, trailers\r\nTransfer-Encoding: chunked\r\n' +
  'Upgrade: h2c\r\nHTTP2-Settings: a\r\nX-Long:  A Value\r\nEmpty:\r\nCookie: a=1\r\n';

const expected: readonly (readonly [kind: EncodedKind, fields: readonly Field[]])[] = [
  [
    'request',
    [
      ['te', 'trailers'],
      ['x-long', 'A Value'],
      ['empty', ''],
      ['cookie', 'a=1'],
    ],
  ],
  [
    'response',
    [
      ['host', 'example.com'],
      ['x-long', 'A Value'],
      ['empty', ''],
      ['cookie', 'a=1'],
    ],
  ],
];

for (const [kind, fields] of expected) {
  test(`encodes lines of a ${kind} without the fields that HTTP/2 does not have`, () => {
    const bytes = Buffer.from(LINES);
    const lines = (encoder: HpackEncoder): void => encodeLines(encoder, bytes, { start: 0, end: bytes.length, kind });
    assert.deepEqual(fieldsOf(lines), fields);
  });

  test(`encodes the kept fields of a parsed ${kind} like its lines`, () => {
    const bytes = Buffer.from(
      `GET / HTTP/1.1\r\n${LINES.replace('HTTP2', 'Dropped: x\r\nHTTP2')}\r\n`.replace(/Transfer.*?\r\n/, ''),
    );
    const head = new RequestHeadParser();
    assert.equal(head.parse(bytes, 0, bytes.length), 'done');
    const dropped = new Uint8Array(head.fields.count);
    for (let index = 0; index < dropped.length; index += 1) {
      if (head.fields.nameText(index) === 'Dropped') dropped[index] = 1;
    }
    assert.deepEqual(
      fieldsOf((encoder) => encodeFields(encoder, head.fields, dropped, kind)),
      fields,
    );
  });
}
