import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { ResponseHeadParser } from '../../../src/http/h1/response-head.ts';
import { readRequests } from './read-messages.ts';

function requestFraming(version: string, fields: string): string {
  const { messages, partial, end } = readRequests(
    Buffer.from(`POST / ${version}\r\nHost: a\r\n${fields}\r\n`, 'latin1'),
  );
  return (messages[0] ?? partial)?.framing ?? end;
}

function responseFraming(head: string, method: number): string {
  const bytes = Buffer.from(`${head}\r\n`, 'latin1');
  const parser = new ResponseHeadParser();
  parser.reset(method);
  const result = parser.parse(bytes, 0, bytes.length);
  if (result !== 'done') return result;
  const { kind, length, endsConnection } = parser.framing;
  return `${kind}${kind === 'length' ? ` ${length}` : ''}${endsConnection ? ', close' : ''}`;
}

const TE = 'Transfer-Encoding: chunked\r\n';

const REQUESTS: readonly (readonly [fields: string, framing: string])[] = [
  ['', 'none'],
  ['Content-Length: 0\r\n', 'length 0'],
  ['Content-Length: 00012\r\n', 'length 12'],
  ['Content-Length: 9007199254740991\r\n', 'length 9007199254740991'],
  ['Content-Length: 9007199254740992\r\n', 'invalid-content-length'],
  [`Content-Length: 1${'0'.repeat(400)}\r\n`, 'invalid-content-length'],
  ['Content-Length:\r\n', 'invalid-content-length'],
  ['Content-Length: 1,1\r\n', 'invalid-content-length'],
  ['Content-Length: 1, 1\r\n', 'invalid-content-length'],
  ['Content-Length: 1e3\r\n', 'invalid-content-length'],
  ['Content-Length: 0x1\r\n', 'invalid-content-length'],
  ['Content-Length: -0\r\n', 'invalid-content-length'],
  ['Content-Length: 1\xb2\r\n', 'invalid-content-length'],
  ['Content-Length: 1\r\nContent-Length: 1\r\n', 'several-content-lengths'],
  ['Content-Length: 1\r\nX: 1\r\ncontent-length: 2\r\n', 'several-content-lengths'],
  [TE, 'chunked'],
  ['transfer-ENCODING:\t Chunked \r\n', 'chunked'],
  [`${TE}${TE}`, 'invalid-transfer-encoding'],
  ['Transfer-Encoding: chunked,\r\n', 'invalid-transfer-encoding'],
  ['Transfer-Encoding: chunked;a=b\r\n', 'invalid-transfer-encoding'],
  ['Transfer-Encoding: identity\r\n', 'invalid-transfer-encoding'],
  ['Transfer-Encoding: gzip, chunked\r\n', 'invalid-transfer-encoding'],
  ['Transfer-Encoding:\r\n', 'invalid-transfer-encoding'],
  [`${TE}Content-Length: 1\r\n`, 'content-length-with-transfer-encoding'],
  ['Content-Length: 1\r\nTransfer-Encoding: identity\r\n', 'content-length-with-transfer-encoding'],
];

test('each request is framed by its fields', () => {
  for (const [fields, framing] of REQUESTS) assert.equal(requestFraming('HTTP/1.1', fields), framing, fields);
  assert.equal(requestFraming('HTTP/1.0', TE), 'invalid-transfer-encoding');
  assert.equal(requestFraming('HTTP/1.0', 'Content-Length: 1\r\n'), 'length 1');
});

const RESPONSES: readonly (readonly [head: string, toGet: string, toHead: string])[] = [
  ['HTTP/1.1 200 OK\r\n', 'until-close, close', 'none'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n', 'length 5', 'none'],
  [`HTTP/1.1 200 OK\r\n${TE}`, 'chunked', 'none'],
  [`HTTP/1.0 200 OK\r\n${TE}`, 'chunked, close', 'none'],
  ['HTTP/1.0 200 OK\r\nContent-Length: 5\r\n', 'length 5', 'none'],
  ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n', 'none', 'none'],
  [`HTTP/1.1 304 Not Modified\r\n${TE}`, 'none', 'none'],
  ['HTTP/1.1 204 No Content\r\n', 'none', 'none'],
  ['HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n', 'none', 'none'],
  ['HTTP/1.1 204 No Content\r\nContent-Length: 1\r\n', 'unexpected-content-length', 'unexpected-content-length'],
  [`HTTP/1.1 204 No Content\r\n${TE}`, 'invalid-transfer-encoding', 'invalid-transfer-encoding'],
  ['HTTP/1.1 100 Continue\r\n', 'none', 'none'],
  ['HTTP/1.1 101 Switching Protocols\r\n', 'none', 'none'],
  [
    'HTTP/1.1 101 Switching Protocols\r\nContent-Length: 4\r\n',
    'unexpected-content-length',
    'unexpected-content-length',
  ],
  [`HTTP/1.1 103 Early Hints\r\n${TE}`, 'invalid-transfer-encoding', 'invalid-transfer-encoding'],
  ['HTTP/1.1 304 Not Modified\r\nContent-Length: x\r\n', 'invalid-content-length', 'invalid-content-length'],
];

test('each response is framed by its status, its fields and the method of the request', () => {
  for (const [head, toGet, toHead] of RESPONSES) {
    assert.equal(responseFraming(head, METHOD.get), toGet, head);
    assert.equal(responseFraming(head, METHOD.head), toHead, head);
  }
});
