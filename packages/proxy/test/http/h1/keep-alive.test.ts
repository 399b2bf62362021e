import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepAliveSeconds } from '../../../src/http/h1/keep-alive.ts';
import { ResponseHeadParser } from '../../../src/http/h1/response-head.ts';

const NONE = Number.POSITIVE_INFINITY;
const CASES: readonly (readonly [fields: string, seconds: number])[] = [
  ['', NONE],
  ['Keep-Alive: timeout=5', 5],
  ['keep-alive: TimeOut=15, max=100', 15],
  ['Keep-Alive: max=100\t,\ttimeout=7 ,', 7],
  ['Keep-Alive: timeout=0', 0],
  [`Keep-Alive: timeout=${'9'.repeat(400)}`, NONE],
  ['Keep-Alive: timeout=9, timeout=4\r\nKeep-Alive: timeout=6', 4],
  ['Keep-Alive: timeout=x, timeout=8', 8],
  ['Keep-Alive:', NONE],
  ['Keep-Alive: 5', NONE],
  ['Keep-Alive: timeout', NONE],
  ['Keep-Alive: timeout=', NONE],
  ['Keep-Alive: timeout=-1', NONE],
  ['Keep-Alive: timeout=1.5', NONE],
  ['Keep-Alive: timeout= 5', NONE],
  ['Keep-Alive: timeout="5"', NONE],
  ['Keep-Alive: xtimeout=5, timeouts=5', NONE],
  ['X-Keep-Alive: timeout=5\r\nConnection: timeout=5', NONE],
];

test('the smallest valid timeout of Keep-Alive counts', () => {
  const parser = new ResponseHeadParser();
  for (const [fields, expected] of CASES) {
    const bytes = Buffer.from(`HTTP/1.1 204 No Content\r\n${fields === '' ? '' : `${fields}\r\n`}\r\n`);
    parser.reset(0);
    assert.equal(parser.parse(bytes, 0, bytes.length), 'done', fields);
    assert.equal(keepAliveSeconds(parser.fields), expected, fields);
  }
});
