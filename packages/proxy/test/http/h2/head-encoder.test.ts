import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestHeadParser } from '../../../src/http/h1/request-head.ts';
import { encodeLines, encodeRequest, encodeResponse } from '../../../src/http/h2/head-encoder.ts';
import { HpackDecoder } from '../../../src/http/h2/hpack/decoder.ts';
import { HpackEncoder } from '../../../src/http/h2/hpack/encoder.ts';
import { ByteWriter, fieldLine } from '../../../src/http/passes/byte-writer.ts';
import { HeadEdit } from '../../../src/http/passes/head-edit.ts';
import { writeRequestHead } from '../../../src/http/passes/head-writer.ts';
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

const bytes = Buffer.from(LINES);
const COMMON: readonly Field[] = [
  ['x-long', 'A Value'],
  ['empty', ''],
  ['cookie', 'a=1'],
];

for (const [kind, fields] of [
  ['request', [['te', 'trailers'], ...COMMON]],
  ['response', [['host', 'example.com'], ...COMMON]],
  ['trailers', [['host', 'example.com'], ...COMMON]],
] as const) {
  test(`encodes lines of ${kind} without the fields that HTTP/2 does not have`, () => {
    assert.deepEqual(
      fieldsOf((encoder) => encodeLines(encoder, bytes, { start: 0, end: bytes.length, kind })),
      fields,
    );
  });
}

/** Parses a request and drops its field `Dropped`. */
function editedRequest(requestLine: string): { readonly head: RequestHeadParser; readonly edit: HeadEdit } {
  const request = Buffer.from(`${requestLine} HTTP/1.1\r\nHost: example.com\r\nDropped: a\r\nX-Kept: B\r\n\r\n`);
  const head = new RequestHeadParser();
  assert.equal(head.parse(request, 0, request.length), 'done');
  const edit = new HeadEdit();
  edit.begin(head.fields);
  edit.dropByName(Buffer.from('dropped'));
  edit.appended.bytes(fieldLine('X-Added', 'c'));
  return { head, edit };
}

test('encodes a request in the form of HTTP/1.1', () => {
  const pseudoOf = (requestLine: string, change: (edit: HeadEdit) => void = () => {}): string[] => {
    const { head, edit } = editedRequest(requestLine);
    change(edit);
    const writer = new ByteWriter(new Uint8Array(4_096));
    const end = writeRequestHead(writer, edit, head);
    const fields = fieldsOf((encoder) => {
      assert.equal(encodeRequest(encoder, writer.memory, 'https'), end);
    });
    assert.deepEqual(fields.slice(4), [
      ['x-kept', 'B'],
      ['x-added', 'c'],
    ]);
    assert.deepEqual(
      fields.slice(0, 4).map(([name]) => name),
      [':method', ':scheme', ':authority', ':path'],
    );
    return fields.slice(0, 4).map(([, value]) => value);
  };
  assert.deepEqual(pseudoOf('GET /a?b'), ['GET', 'https', 'example.com', '/a?b']);
  assert.deepEqual(pseudoOf('PUT http://example.com/a'), ['PUT', 'https', 'example.com', '/a']);
  assert.deepEqual(pseudoOf('GET http://example.com?b'), ['GET', 'https', 'example.com', '/?b']);
  assert.deepEqual(pseudoOf('OPTIONS http://example.com'), ['OPTIONS', 'https', 'example.com', '*']);
  assert.deepEqual(pseudoOf('OPTIONS *'), ['OPTIONS', 'https', 'example.com', '*']);
  const rewrite = (edit: HeadEdit): void => {
    edit.target = Buffer.from('/new');
    edit.replaceHost(Buffer.from('other.example'), 0, 13);
  };
  assert.deepEqual(pseudoOf('GET /old', rewrite), ['GET', 'https', 'other.example', '/new']);
});

test('encodes an edited response of HTTP/1.1', () => {
  const { edit } = editedRequest('GET /');
  assert.deepEqual(
    fieldsOf((encoder) => encodeResponse(encoder, edit, 418)),
    [
      [':status', '418'],
      ['host', 'example.com'],
      ['x-kept', 'B'],
      ['x-added', 'c'],
    ],
  );
});
