import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  MAX_REQUEST_TARGET_BYTES,
  parseRequestTarget,
  REQUEST_TARGET_REFUSAL_STATUS,
  type RequestTarget,
  type RequestTargetRefusal,
} from '@weir/model';

const parse = (target: string, host = 'a', method = 'GET'): RequestTarget | RequestTargetRefusal =>
  parseRequestTarget(method, target, host);

/** Returns what the endpoint would get as request target, or the refusal. */
function sentTarget(target: string, method = 'GET'): string {
  const parsed = parse(target, 'a', method);
  return typeof parsed === 'string' ? parsed : parsed.text;
}

/** Returns the Host that the endpoint would get, or the refusal. */
function sentHost(host: string): string {
  const parsed = parse('/', host);
  return typeof parsed === 'string' ? parsed : parsed.authority;
}

test('sends normal paths and hosts as the same strings', () => {
  const paths = [
    '/',
    '/a/b',
    '/a/',
    '//',
    '//host/',
    '/a//b',
    '/a;x=1/b',
    '/.well-known/acme',
    '/...',
    '/a/..b/.c',
    '/a.b./c..',
    '/a%20b/%C3%A4',
    '/%25',
    "/!$&'()*+,;=:@",
    '/[a]^|',
    '/~a_b-c',
    '/a;..',
    '/a?b=/../c&d=%2f%00\\"{}[]|`<>',
    '/a?',
    '/?a?b',
  ];
  for (const path of paths) {
    const parsed = parse(path);
    assert.ok(typeof parsed === 'object', path);
    assert.equal(parsed.text, path);
    assert.equal(parsed.path + parsed.query, path);
  }
  for (const host of ['a', 'shop.example.com', 'shop.example.com:8080', '192.0.2.1', 'a_b', '[2001:db8::1]:443', '']) {
    assert.equal(sentHost(host), host);
  }
});

const NORMALIZED: readonly (readonly [name: string, target: string, sent: string])[] = [
  ['encoded unreserved characters', '/%61%7E%2d%5F', '/a~-_'],
  ['hex digits in lower case', '/%c3%a4%2b%3b', '/%C3%A4%2B%3B'],
  ['hex digits in mixed case', '/%cB%Cb', '/%CB%CB'],
  ['a double encoding of a dot segment', '/a/%252e%252e/b', '/a/%252e%252e/b'],
  ['a double encoding of a slash', '/a%252fb', '/a%252fb'],
  ['an encoding that decoding completes', '/%2%35', 'invalid-percent-encoding'],
  ['an encoded percent sign before hex digits', '/%2541', '/%2541'],
  ['a dot segment', '/a/./b', '/a/b'],
  ['a dot segment at the end', '/a/.', '/a/'],
  ['a parent segment', '/a/../b', '/b'],
  ['a parent segment at the end', '/a/b/..', '/a/'],
  ['a parent segment that leads to the root', '/a/..', '/'],
  ['an encoded parent segment', '/a/%2e%2e/b', '/b'],
  ['an encoded parent segment in upper case', '/a/%2E%2E/b', '/b'],
  ['a half encoded parent segment', '/a/.%2e/b', '/b'],
  ['the other half encoded', '/a/%2E./b', '/b'],
  ['an encoded dot segment at the end', '/a/%2e', '/a/'],
  ['a parent segment before a query', '/a/..?b/..', '/?b/..'],
  ['a parent segment after an empty segment', '/a//../b', '/a/b'],
  ['a parent segment before an empty segment', '/a/..//b', '//b'],
  ['three dots', '/a/.../b', '/a/.../b'],
  ['three dots, encoded', '/a/%2e%2e%2e/b', '/a/.../b'],
  ['an overlong encoding of dots, which is not UTF-8', '/a/%c0%ae%c0%ae/b', '/a/%C0%AE%C0%AE/b'],
];

for (const [name, target, sent] of NORMALIZED) {
  test(`normalises ${name}: ${target}`, () => {
    assert.equal(sentTarget(target), sent);
  });
}

const REFUSED: readonly (readonly [target: string, refusal: RequestTargetRefusal])[] = [
  ['/..', 'above-root'],
  ['/../a', 'above-root'],
  ['/a/../../b', 'above-root'],
  ['/%2e%2e/a', 'above-root'],
  ['/./../a', 'above-root'],
  ['/a/..;/b', 'dot-segment-with-parameter'],
  ['/a/..;x=1', 'dot-segment-with-parameter'],
  ['/a/.;/b', 'dot-segment-with-parameter'],
  ['/a/%2e%2e;/b', 'dot-segment-with-parameter'],
  ['/a/..%3b/b', 'dot-segment-with-parameter'],
  ['/a/..%3B/b', 'dot-segment-with-parameter'],
  ['/a/.%2E%3Bx/b', 'dot-segment-with-parameter'],
  ['/%2f', 'encoded-slash'],
  ['/a%2Fb', 'encoded-slash'],
  ['/a/..%2fb', 'encoded-slash'],
  ['/a%5c..%5cb', 'encoded-slash'],
  ['/a%5Cb', 'encoded-slash'],
  ['/a\\b', 'backslash'],
  ['/\\host/', 'backslash'],
  ['/..\\a', 'backslash'],
  ['/a%00', 'encoded-control'],
  ['/a%0d%0aHost:b', 'encoded-control'],
  ['/a%7F', 'encoded-control'],
  ['/%', 'invalid-percent-encoding'],
  ['/%2', 'invalid-percent-encoding'],
  ['/%2?f', 'invalid-percent-encoding'],
  ['/%zz', 'invalid-percent-encoding'],
  ['/%u002f', 'invalid-percent-encoding'],
  ['/%+1', 'invalid-percent-encoding'],
  ['/a#b', 'fragment'],
  ['/a?b#c', 'fragment'],
  ['/a b', 'invalid-character'],
  ['/a\tb', 'invalid-character'],
  ['/a\u0000', 'invalid-character'],
  ['/a\u007f', 'invalid-character'],
  ['/ä', 'invalid-character'],
  ['/a\u2044b', 'invalid-character'],
  ['/a?b c', 'invalid-character'],
  ['/a?\u0000', 'invalid-character'],
  ['/a?ä', 'invalid-character'],
  ['/"<>{}`', 'invalid-character'],
  ['', 'invalid-target'],
  ['*', 'invalid-target'],
  ['a', 'invalid-target'],
  ['?a', 'invalid-target'],
  ['a:80', 'invalid-target'],
  ['http:/a/b', 'invalid-target'],
  ['ftp://a/b', 'unsupported-scheme'],
  ['file:///etc', 'unsupported-scheme'],
  ['http:///a', 'invalid-host'],
  ['http://?a', 'invalid-host'],
  ['http://a\\b/', 'invalid-host'],
  ['http://b/', 'host-mismatch'],
  ['http://a:81/', 'host-mismatch'],
  ['https://a:80/', 'host-mismatch'],
  ['http://x@a/', 'userinfo'],
  ['http://a@b/', 'userinfo'],
  ['http://a/%2f', 'encoded-slash'],
  ['http://a/../b', 'above-root'],
  ['http://a#b', 'fragment'],
];

for (const [target, refusal] of REFUSED) {
  test(`refuses ${JSON.stringify(target)}: ${refusal}`, () => {
    assert.equal(parse(target), refusal);
  });
}

test('reads path, host and port of a target in absolute-form', () => {
  const cases: readonly (readonly [target: string, host: string, sent: readonly [string, string]])[] = [
    ['http://a', 'a', ['a', '/']],
    ['http://a?b', 'a', ['a', '/?b']],
    ['HTTP://A/b', 'a', ['a', '/b']],
    ['http://a:80/', 'a', ['a:80', '/']],
    ['https://a/', 'a:443', ['a', '/']],
    ['http://a.:8080/x', 'A:8080', ['a:8080', '/x']],
    ['http://a//b', 'a', ['a', '//b']],
    ['http://a/b', '', ['a', '/b']],
    ['http://[::1]/b', '[::0001]', ['[::1]', '/b']],
  ];
  for (const [target, host, sent] of cases) {
    const parsed = parse(target, host);
    assert.ok(typeof parsed === 'object', `${target}: ${parsed}`);
    assert.deepEqual([parsed.authority, parsed.text], sent);
  }
  assert.deepEqual(parse('https://a:8443/b?c', 'a:8443'), {
    scheme: 'https',
    host: 'a',
    port: 8443,
    authority: 'a:8443',
    path: '/b',
    query: '?c',
    text: '/b?c',
  });
});

test('knows the asterisk-form of OPTIONS only', () => {
  assert.equal(sentTarget('*', 'OPTIONS'), '*');
  assert.equal(sentTarget('http://a', 'OPTIONS'), '*');
  assert.equal(sentTarget('http://a?', 'OPTIONS'), '/?');
  assert.equal(sentTarget('http://a/', 'OPTIONS'), '/');
  assert.equal(sentTarget('*/test', 'OPTIONS'), 'invalid-target');
  assert.equal(sentTarget('*', 'options'), 'invalid-target');
});

test('refuses CONNECT with 501', () => {
  assert.equal(parse('a:443', 'a:443', 'CONNECT'), 'connect');
  assert.equal(REQUEST_TARGET_REFUSAL_STATUS.connect, 501);
});

test('refuses a target that is too long with 414', () => {
  assert.equal(typeof parse(`/${'a'.repeat(MAX_REQUEST_TARGET_BYTES - 1)}`), 'object');
  assert.equal(parse(`/${'a'.repeat(MAX_REQUEST_TARGET_BYTES)}`), 'target-too-long');
  assert.equal(REQUEST_TARGET_REFUSAL_STATUS['target-too-long'], 414);
});

test('normalises the Host', () => {
  const cases: readonly (readonly [host: string, sent: string])[] = [
    ['Shop.Example.COM', 'shop.example.com'],
    ['shop.example.com.', 'shop.example.com'],
    ['SHOP.:8080', 'shop:8080'],
    ['a:', 'a'],
    ['a:0080', 'a:80'],
    ['a:00080', 'a:80'],
    ['[2001:DB8:0:0:0:0:0:1]', '[2001:db8::1]'],
    ['[::1]:', '[::1]'],
    ['[::ffff:192.0.2.1]', '[::ffff:c000:201]'],
    [`${'a'.repeat(253)}.`, 'a'.repeat(253)],
  ];
  for (const [host, sent] of cases) assert.equal(sentHost(host), sent, host);
});

test('refuses a Host that names no host, or more than a host and a port', () => {
  const hosts = ['.', 'a..b', '.a', 'a..', ':80', 'a:b', 'a:0', 'a:65536', 'a:100000', 'a:8 0', 'a:-1', 'a:80:80'];
  const more = ['a,b', 'a b', ' a', 'a/b', 'a?', 'a#', 'a%2eb', '*.a', 'ä', 'a\u0000', 'a\u2024b', 'a\\b'];
  const ipv6 = ['::1', '[::1', '[]', '[a]', '[::1]a', '[::1%25eth0]', '[::1%eth0]', '[v1.a]', '[1.2.3.4]', '[::1]]'];
  for (const host of [...hosts, ...more, ...ipv6, 'a'.repeat(254)]) assert.equal(sentHost(host), 'invalid-host', host);
  for (const host of ['x@a', 'x:y@a', '@', 'a@[::1]', '[::1]@a']) assert.equal(sentHost(host), 'userinfo', host);
});

interface VectorRow {
  readonly id: string;
  readonly method: string;
  readonly target: string;
  readonly host: string;
  /** What the source of the row expects. */
  readonly vector: string;
  /** What Weir answers: the refusal, or some of the fields of the parsed target. */
  readonly result: RequestTargetRefusal | Partial<RequestTarget>;
  readonly source: string;
}

const rows = readFileSync(new URL('../fixtures/request-targets.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as VectorRow);

for (const { id, method, target, host, result } of rows) {
  test(`decides ${id} as the vectors expect`, () => {
    const parsed = parse(target, host, method);
    if (typeof result === 'string' || typeof parsed === 'string') assert.equal(parsed, result);
    else assert.deepEqual({ ...parsed, ...result }, parsed);
  });
}
