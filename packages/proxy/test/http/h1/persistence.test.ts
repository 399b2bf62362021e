import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPersistent } from '../../../src/http/h1/persistence.ts';
import { RequestHeadParser } from '../../../src/http/h1/request-head.ts';

const CASES: readonly (readonly [fields: string, http11: boolean, http10: boolean])[] = [
  ['', true, false],
  ['X: close\r\n', true, false],
  ['Connection:\r\n', true, false],
  ['Connection: close\r\n', false, false],
  ['connection: CLOSE\r\n', false, false],
  ['Connection: keep-alive\r\n', true, true],
  ['Connection: ,\t, Keep-Alive ,x\r\n', true, true],
  ['Connection: x,close\r\n', false, false],
  ['Connection: keep-alive, close\r\n', false, false],
  ['Connection: keep-alive\r\nX: 1\r\nConnection: close\r\n', false, false],
  ['Connection: closed, clos, x-close, close=1\r\n', true, false],
  ['Connection: keep alive\r\n', true, false],
  ['Keep-Alive: timeout=5\r\n', true, false],
  ['Proxy-Connection: keep-alive\r\n', true, false],
];

test('a connection persists as the version and the Connection fields say', () => {
  const parser = new RequestHeadParser();
  for (const [fields, ...expected] of CASES) {
    for (const minorVersion of [1, 0]) {
      const bytes = Buffer.from(`GET / HTTP/1.${minorVersion}\r\nHost: a\r\n${fields}\r\n`);
      parser.reset();
      assert.equal(parser.parse(bytes, 0, bytes.length), 'done');
      assert.equal(isPersistent(parser.fields, parser.minorVersion), expected[1 - minorVersion], fields);
    }
  }
});
