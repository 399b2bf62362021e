import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { MAX_HEAD_BYTES } from '../../../src/http/h1/request-head.ts';
import { cutsOf, type ReadResult, readResponses } from './read-messages.ts';

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');
const read = (text: string, method: number = METHOD.get): ReadResult => readResponses(bytesOf(text), [], method);

test('a response is parsed with its status, reason phrase and fields', () => {
  const { messages, end } = read('HTTP/1.0 404 Not  Found\r\nServer:\tnginx \r\ncontent-LENGTH: 2\r\n\r\nno');
  assert.equal(end, 'end');
  assert.equal(messages[0]?.start, 'HTTP/1.0 404 Not  Found');
  assert.deepEqual(messages[0].fields, [
    ['Server', 'nginx'],
    ['content-LENGTH', '2'],
  ]);
  assert.equal(messages[0].body, 'no');
});

const STATUS_LINES: readonly (readonly [line: string, result: string])[] = [
  ['HTTP/1.1 200 \r\n', 'HTTP/1.1 200 '],
  ['HTTP/1.1 200\r\n', 'HTTP/1.1 200 '],
  ['HTTP/1.1 200  OK\t\xe9 \r\n', 'HTTP/1.1 200  OK\t\xe9 '],
  ['HTTP/1.1 100 X\r\n', 'HTTP/1.1 100 X'],
  ['HTTP/1.1 599 X\r\n', 'HTTP/1.1 599 X'],
  ['HTTP/1.1 099 X\r\n', 'invalid-status-line'],
  ['HTTP/1.1 600 X\r\n', 'invalid-status-line'],
  ['HTTP/1.1 2000 OK\r\n', 'invalid-status-line'],
  ['HTTP/1.1 20 OK\r\n', 'invalid-status-line'],
  ['HTTP/1.1 2\xb20 OK\r\n', 'invalid-status-line'],
  ['HTTP/1.1  200 OK\r\n', 'invalid-status-line'],
  ['HTTP/1.2 200 OK\r\n', 'invalid-status-line'],
  ['HTTP/2.0 200 OK\r\n', 'invalid-status-line'],
  ['http/1.1 200 OK\r\n', 'invalid-status-line'],
  ['\r\nHTTP/1.1 200 OK\r\n', 'invalid-status-line'],
  ['HTTP/1.1 200 O\0K\r\n', 'invalid-status-line'],
  ['HTTP/1.1 200 O\rK\r\n', 'invalid-line-ending'],
  ['HTTP/1.1 200 OK\n', 'invalid-line-ending'],
  ['HTTP/1.1 200\n', 'invalid-line-ending'],
  ['HTTP/1.1 200 OK\r\n X: 1\r\n', 'invalid-field-name'],
  ['HTTP/1.1 200 OK\r\nX: 1\r\n Y: 2\r\n', 'folded-field'],
];

test('each status line is parsed or refused, whole, at every split and byte by byte', () => {
  for (const [line, expected] of STATUS_LINES) {
    const bytes = bytesOf(`${line}\r\n`);
    const whole = readResponses(bytes, [], METHOD.get);
    assert.equal((whole.messages[0] ?? whole.partial)?.start ?? whole.end, expected, JSON.stringify(line));
    for (const cuts of cutsOf(bytes)) assert.deepEqual(readResponses(bytes, cuts, METHOD.get), whole, line);
  }
});

test('a response head has the same limit as a request head', () => {
  const head = (size: number): string => `HTTP/1.1 204 ${'x'.repeat(size - 'HTTP/1.1 204 \r\n\r\n'.length)}\r\n\r\n`;
  assert.equal(read(head(MAX_HEAD_BYTES)).end, 'end');
  assert.equal(read(head(MAX_HEAD_BYTES + 1)).end, 'head-too-large');
});

test('responses to HEAD follow each other without bodies', () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n';
  assert.equal(read(head.repeat(3), METHOD.head).messages.length, 3);
  assert.equal(read(`${head}hello${head}hello`).messages.length, 2);
});
