import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeCertificate } from '@weir/testkit';
import { parseConfigMap } from '../../src/parse/config-map.ts';

const parse = (content: object) => {
  const raw = { metadata: { namespace: 'shop', name: 'pages' }, ...content };
  const { object, problems } = parseConfigMap(raw);
  assert.deepEqual(problems, []);
  assert.ok(object);
  return object;
};
const pagesOf = (data: object) => parse({ data }).errorPages;
const whyOf = (data: object, more: object = {}): string | undefined => {
  const { errorPages } = parse({ data, ...more });
  return errorPages.kind === 'unusable' ? errorPages.why : undefined;
};

test('reads pages of status codes, classes and all answers in three formats', () => {
  const data = { 'default.txt': '', '5xx.json': '{}', '404.html': '<p>\u00e4\t\n</p>', 'ca.crt': 'x' };
  const expected = { kind: 'good', pages: { '404.html': '<p>\u00e4\t\n</p>', '5xx.json': '{}', 'default.txt': '' } };
  assert.deepEqual(pagesOf(data), expected);
  assert.deepEqual(Object.keys((expected as { pages: object }).pages), ['404.html', '5xx.json', 'default.txt']);
});

test('says which key is no error page', () => {
  const help = 'use a status code, a class or default, and a format, such as 404.html, 5xx.json or default.txt';
  for (const name of ['404.htm', '404', '200.html', '3xx.txt', '4XX.html', '600.html', 'Default.txt', '__proto__'])
    assert.equal(
      whyOf(JSON.parse(`{"${name}":"x"}`)),
      `has the key "${name}", which is not the name of an error page; ${help}`,
    );
  assert.match(whyOf({ ['x'.repeat(500)]: '' }) ?? '', /^has the key "x{79}…", which/);
  assert.equal(whyOf({}), `has no error pages; ${help}`);
  assert.equal(whyOf({ 'ca.crt': 'x' }), `has no error pages; ${help}`);
});

test('bounds the number and the size of pages', () => {
  const pages = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`${400 + i}.txt`, 'x']));
  assert.equal(whyOf(pages(32)), undefined);
  assert.equal(whyOf(pages(33)), 'has 33 error pages; use at most 32');
  assert.equal(whyOf({ '404.html': '\u00e4'.repeat(8_192) }), undefined);
  assert.equal(whyOf({ '404.html': `${'\u00e4'.repeat(8_192)}x` }), 'has a 404.html of more than 16 KiB');
});

test('refuses pages that are not text, have control characters, or are not valid JSON', () => {
  assert.equal(whyOf({ '404.html': 1 }), 'has a 404.html that is not text');
  assert.equal(whyOf({ '404.html': 'a\u0000' }), 'has a 404.html with control characters');
  assert.equal(whyOf({ '404.json': '{' }), 'has a 404.json that is not valid JSON');
  assert.equal(whyOf({}, { binaryData: { '404.html': '' } }), 'has binaryData; use data, because error pages are text');
  assert.equal(whyOf({}, { data: 'x' }), 'has data that is not a mapping');
});

test('reads the CAs in ca.crt', () => {
  const authority = makeCertificate({ name: 'CA', isAuthority: true });
  const { certificate: notCa } = makeCertificate({ name: 'a.example' });
  const of = (value: unknown) => parse({ data: { 'ca.crt': value } }).authorities;
  assert.deepEqual(of(authority.certificate), { kind: 'good', certificates: authority.certificate });
  assert.equal(parse({}).authorities, null);
  for (const [value, why] of [
    ['x', /does not contain a PEM certificate/],
    [1, /is not text/],
    [notCa, /is not a CA certificate/],
    ['x'.repeat(70_000), /of more than 64 KiB/],
  ] as const) {
    const authorities = of(value);
    assert.ok(authorities?.kind === 'unusable');
    assert.match(authorities.why, why);
  }
});
