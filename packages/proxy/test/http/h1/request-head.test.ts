import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_FIELD_BYTES } from '../../../src/http/h1/field-lines.ts';
import { MAX_FIELDS } from '../../../src/http/h1/head-fields.ts';
import { METHOD, METHOD_NAMES } from '../../../src/http/h1/methods.ts';
import { REFUSAL_STATUS } from '../../../src/http/h1/refusals.ts';
import { MAX_HEAD_BYTES, RequestHeadParser } from '../../../src/http/h1/request-head.ts';
import { MAX_TARGET_BYTES } from '../../../src/http/h1/request-line.ts';
import { type ReadMessage, readRequests } from './read-messages.ts';

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

function read(text: string): ReadMessage | string {
  const { messages, end } = readRequests(bytesOf(text));
  return messages[0] ?? end;
}

function accepted(text: string): ReadMessage {
  const message = read(text);
  assert.ok(typeof message !== 'string', `${JSON.stringify(text.slice(0, 60))}: ${message}`);
  return message;
}

const request = (line: string, host = 'a'): string => `${line}\r\nHost: ${host}\r\n\r\n`;

test('a request is parsed with its method, target, host and fields', () => {
  const message = accepted('PUT /a/b?c=d?e HTTP/1.1\r\nhOsT:Shop.example:8080\r\nX-Empty:\r\nX-Two: \t v w \t\r\n\r\n');
  assert.deepEqual(message, {
    start: 'PUT /a/b?c=d?e HTTP/1.1',
    host: 'Shop.example:8080',
    path: '/a/b ?c=d?e',
    fields: [
      ['hOsT', 'Shop.example:8080'],
      ['X-Empty', ''],
      ['X-Two', 'v w'],
    ],
    framing: 'none',
    body: '',
    trailers: [],
  });
});

test('each method has its id, and only in upper case', () => {
  const parser = new RequestHeadParser();
  const idOf = (method: string): number => {
    const bytes = bytesOf(request(`${method} ${method === 'OPTIONS' ? '*' : '/'} HTTP/1.1`));
    parser.reset();
    assert.equal(parser.parse(bytes, 0, bytes.length), 'done', method);
    return parser.methodId;
  };
  for (const [id, name] of METHOD_NAMES.entries()) {
    if (id === METHOD.other || id === METHOD.connect) continue;
    assert.equal(idOf(name), id);
    assert.equal(METHOD[name.toLowerCase() as keyof typeof METHOD], id);
  }
  for (const other of ['get', 'GETS', 'GE', 'Put', 'M-SEARCH', 'QUERY', 'x'.repeat(32), "!#$%&'*+-.^_`|~"]) {
    assert.equal(idOf(other), METHOD.other, other);
  }
});

const TARGETS: readonly (readonly [target: string, host: string, path: string])[] = [
  ['/', 'a:0', '/ '],
  ['/?', 'a:0', '/ ?'],
  ["/-._~!$&'()*+,;=:@%20/[]^|", 'a:0', "/-._~!$&'()*+,;=:@%20/[]^| "],
  ['/a?{}`\\?/[]^|', 'a:0', '/a ?{}`\\?/[]^|'],
  ['//x/y', 'a:0', '//x/y '],
  ['http://a', 'a:0', ' '],
  ['http://A/', 'A:0', '/ '],
  ['http://a?x=/y', 'a:0', ' ?x=/y'],
  ['HTTPS://a:443/b/http://c', 'a:443', '/b/http://c '],
  ['http://a:80/@', 'a:80', '/@ '],
];

test('each valid target is split into host, path and query', () => {
  for (const [target, host, path] of TARGETS) {
    const message = accepted(request(`GET ${target} HTTP/1.1`));
    assert.deepEqual([message.host, message.path], [host, path], target);
  }
  assert.equal(accepted(request('OPTIONS * HTTP/1.1')).path, '* ');
});

const REFUSED_LINES: readonly (readonly [line: string, refusal: string])[] = [
  [' GET / HTTP/1.1', 'invalid-method'],
  ['GET', 'invalid-method'],
  ['G@T / HTTP/1.1', 'invalid-method'],
  [`${'x'.repeat(33)} / HTTP/1.1`, 'method-too-long'],
  ['CONNECT a:443 HTTP/1.1', 'connect-not-supported'],
  ['GET  / HTTP/1.1', 'invalid-target'],
  ['GET a HTTP/1.1', 'invalid-target'],
  ['GET a:80 HTTP/1.1', 'invalid-target'],
  ['GET ?x HTTP/1.1', 'invalid-target'],
  ['OPTIONS ** HTTP/1.1', 'invalid-target'],
  ['GET /a\\b HTTP/1.1', 'invalid-target'],
  ['GET /a#b HTTP/1.1', 'invalid-target'],
  ['GET /a?b#c HTTP/1.1', 'invalid-target'],
  ['GET /\x7f HTTP/1.1', 'invalid-target'],
  ['GET /\xe9 HTTP/1.1', 'invalid-target'],
  ['GET /?\xe9 HTTP/1.1', 'invalid-target'],
  ['GET /\t HTTP/1.1', 'invalid-target'],
  ['GET /?"" HTTP/1.1', 'invalid-target'],
  ['GET /<> HTTP/1.1', 'invalid-target'],
  ['GET ftp://a/ HTTP/1.1', 'invalid-target'],
  ['GET http:///b HTTP/1.1', 'invalid-target'],
  ['GET http:/a HTTP/1.1', 'invalid-target'],
  ['GET http://x@a/ HTTP/1.1', 'invalid-target'],
  ['GET http://a:0/ HTTP/1.1', 'invalid-target'],
  ['GET http://b/ HTTP/1.1', 'host-mismatch'],
  ['GET http://a:81/ HTTP/1.1', 'host-mismatch'],
  ['GET https://a:80/ HTTP/1.1', 'host-mismatch'],
  ['GET /', 'invalid-request-line'],
  ['GET / ', 'invalid-request-line'],
  ['GET / HTTP/1.1 ', 'invalid-request-line'],
  ['GET /  HTTP/1.1', 'invalid-request-line'],
  ['GET / http/1.1', 'invalid-request-line'],
  ['GET / HTTP/1,1', 'invalid-request-line'],
  ['GET / HTTP/1.10', 'invalid-request-line'],
  ['GET / HTTP/11.1', 'invalid-request-line'],
  ['GET / HTTP/0.9', 'unsupported-version'],
  ['GET / HTTP/1.2', 'unsupported-version'],
  ['GET / HTTP/2.0', 'unsupported-version'],
  ['GET / HTTP/1.1\n', 'invalid-line-ending'],
  ['GET / HTTP/1.1\rX', 'invalid-line-ending'],
  ['\r\n\r\nGET / HTTP/1.1', 'invalid-method'],
  ['\nGET / HTTP/1.1', 'invalid-method'],
  ['\rGET / HTTP/1.1', 'invalid-line-ending'],
];

test('each invalid request line is refused', () => {
  for (const [line, refusal] of REFUSED_LINES) assert.equal(read(request(line)), refusal, JSON.stringify(line));
});

test('each refusal has the status of its RFC', () => {
  assert.equal(REFUSAL_STATUS['connect-not-supported'], 501);
  assert.equal(REFUSAL_STATUS['method-too-long'], 501);
  assert.equal(REFUSAL_STATUS['unsupported-version'], 505);
  assert.equal(REFUSAL_STATUS['target-too-long'], 414);
  assert.equal(REFUSAL_STATUS['head-too-large'], 431);
});

test('each invalid Host is refused', () => {
  const invalid = ['', ' ', 'a b', 'a,b', 'x@a', 'a/b', 'a%41', 'a\xe9', ':80', 'a:x', 'a:-1', 'a:65536', 'a:000080'];
  const literals = ['[::1', '[]', '[a]', '[:]', '[::1]x', '[::g]', '[::1]:x', '[fe80::1%25eth0]', '::1'];
  for (const host of [...invalid, ...literals, 'x'.repeat(256)]) {
    assert.equal(read(request('GET / HTTP/1.1', host)), 'invalid-host', host);
  }
});

test('each valid Host is split into host and port', () => {
  const hosts = ['a:0', 'a-b.c_d.:0', '127.0.0.1:0', '[::1]:0', '[::ffff:127.0.0.1]:0', `${'x'.repeat(255)}:0`];
  for (const host of hosts) assert.equal(accepted(request('GET / HTTP/1.1', host.replace(/:0$/, ''))).host, host);
  for (const host of ['a:1', 'a:65535', '[::1]:80']) {
    assert.equal(accepted(request('GET / HTTP/1.1', host)).host, host);
  }
  assert.equal(accepted(request('GET / HTTP/1.1', 'a:')).host, 'a:0');
  assert.equal(accepted(request('GET / HTTP/1.1', 'a:0080')).host, 'a:80');
});

test('HTTP/1.1 requires one Host, and HTTP/1.0 allows at most one', () => {
  assert.equal(read('GET / HTTP/1.1\r\n\r\n'), 'missing-host');
  assert.equal(read('GET http://a/ HTTP/1.1\r\n\r\n'), 'missing-host');
  assert.equal(read('GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n'), 'several-hosts');
  assert.equal(read('GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n'), 'several-hosts');
  assert.equal(accepted('GET / HTTP/1.0\r\n\r\n').host, ':0');
  assert.equal(accepted('GET http://a:1/ HTTP/1.0\r\n\r\n').host, 'a:1');
});

const HEAD = 'GET / HTTP/1.1\r\nHost: a\r\n';

const REFUSED_FIELDS: readonly (readonly [lines: string, refusal: string])[] = [
  ['X : 1\r\n', 'invalid-field-name'],
  ['X\t: 1\r\n', 'invalid-field-name'],
  [': 1\r\n', 'invalid-field-name'],
  ['X\r\n', 'invalid-field-name'],
  ['X(: 1\r\n', 'invalid-field-name'],
  ['X\xe9: 1\r\n', 'invalid-field-name'],
  [' X: 1\r\n', 'folded-field'],
  ['\tX: 1\r\n', 'folded-field'],
  ['X: 1\n', 'invalid-line-ending'],
  ['X: 1\rY: 2\r\n', 'invalid-line-ending'],
  ['X: 1\r\r\n', 'invalid-line-ending'],
  ['X\n', 'invalid-line-ending'],
  ['\n', 'invalid-line-ending'],
  ['X: \0\r\n', 'invalid-field-value'],
  ['X: \x0b\r\n', 'invalid-field-value'],
  ['X: \x7f\r\n', 'invalid-field-value'],
  ['X_Forwarded_For: b\r\n', 'ambiguous-field-name'],
  ['Content_Length: 1\r\n', 'ambiguous-field-name'],
];

test('each invalid field line is refused', () => {
  for (const [lines, refusal] of REFUSED_FIELDS) {
    assert.equal(read(`${HEAD}${lines}\r\n`), refusal, JSON.stringify(lines));
  }
  assert.equal(read('GET / HTTP/1.1\r\n Host: a\r\n\r\n'), 'invalid-field-name');
});

/** Returns a head of `size` bytes with fields that are each within their limit. */
function headOfSize(size: number): string {
  const line = `X: ${'v'.repeat(10_000)}\r\n`;
  const rest = size - HEAD.length - 3 * line.length - 'Y: \r\n\r\n'.length;
  return `${HEAD}${line}${line}${line}Y: ${'v'.repeat(rest)}\r\n\r\n`;
}

const LIMITS: readonly (readonly [name: string, at: string, above: string, refusal: string])[] = [
  ['head', headOfSize(MAX_HEAD_BYTES), headOfSize(MAX_HEAD_BYTES + 1), 'head-too-large'],
  [
    'target',
    request(`GET /${'a'.repeat(MAX_TARGET_BYTES - 1)} HTTP/1.1`),
    request(`GET /${'a'.repeat(MAX_TARGET_BYTES)} HTTP/1.1`),
    'target-too-long',
  ],
  [
    'query',
    request(`GET /?${'a'.repeat(MAX_TARGET_BYTES - 2)} HTTP/1.1`),
    request(`GET /?${'a'.repeat(MAX_TARGET_BYTES - 1)} HTTP/1.1`),
    'target-too-long',
  ],
  [
    'fields',
    `${HEAD}${'X: 1\r\n'.repeat(MAX_FIELDS - 1)}\r\n`,
    `${HEAD}${'X: 1\r\n'.repeat(MAX_FIELDS)}\r\n`,
    'too-many-fields',
  ],
  [
    'value',
    `${HEAD}X: ${'v'.repeat(MAX_FIELD_BYTES - 3)}\r\n\r\n`,
    `${HEAD}X: ${'v'.repeat(MAX_FIELD_BYTES - 2)}\r\n\r\n`,
    'field-too-large',
  ],
  [
    'whitespace',
    `${HEAD}X:${' '.repeat(MAX_FIELD_BYTES - 2)}\r\n\r\n`,
    `${HEAD}X:${' '.repeat(MAX_FIELD_BYTES - 1)}\r\n\r\n`,
    'field-too-large',
  ],
  [
    'name',
    `${HEAD}${'x'.repeat(MAX_FIELD_BYTES - 1)}:\r\n\r\n`,
    `${HEAD}${'x'.repeat(MAX_FIELD_BYTES)}:\r\n\r\n`,
    'field-too-large',
  ],
];

test('each limit is exact, whole and byte by byte', () => {
  for (const [name, at, above, refusal] of LIMITS) {
    for (const text of [at, above]) {
      const bytes = bytesOf(text);
      const single = Array.from({ length: bytes.length - 1 }, (_, index) => index + 1);
      const whole = readRequests(bytes);
      assert.equal(whole.end, text === at ? 'end' : refusal, name);
      assert.deepEqual(readRequests(bytes, single), whole, name);
    }
  }
});

test('a head that never ends is refused as soon as its limit is reached', () => {
  const bytes = bytesOf(headOfSize(MAX_HEAD_BYTES)).fill(0x76, MAX_HEAD_BYTES - 2);
  const parser = new RequestHeadParser();
  assert.equal(parser.parse(bytes, 0, MAX_HEAD_BYTES - 1), 'more');
  assert.equal(parser.parse(bytes, 0, MAX_HEAD_BYTES), 'head-too-large');
});

test('a parser continues in a larger array', () => {
  const text = request('GET /path HTTP/1.1', 'shop.example');
  const parser = new RequestHeadParser();
  for (let length = 1; length < text.length; length += 1) {
    assert.equal(parser.parse(bytesOf(`....${text.slice(0, length)}`), 4, 4 + length), 'more');
  }
  assert.equal(parser.parse(bytesOf(`....${text}`), 4, 4 + text.length), 'done');
  assert.equal(parser.bodyStart, 4 + text.length);
  assert.equal(parser.fields.valueText(0), 'shop.example');
});
