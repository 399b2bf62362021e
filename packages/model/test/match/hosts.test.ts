import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findHost, isHostAllowed, parseHost } from '@weir/model';

const owners = new Map([
  ['shop.example.com', 'exact'],
  ['*.example.com', 'wildcard'],
  ['*.b.example.com', 'longer'],
  ['localhost', 'one label'],
]);

test('an exact host beats a wildcard', () => {
  assert.equal(findHost(owners, 'shop.example.com'), 'exact');
  assert.equal(findHost(owners, 'api.example.com'), 'wildcard');
});

test('a wildcard matches exactly one label', () => {
  assert.equal(findHost(owners, 'example.com'), undefined);
  assert.equal(findHost(owners, 'a.c.example.com'), undefined);
  assert.equal(findHost(owners, '.example.com'), undefined);
});

test('the longest wildcard wins', () => {
  assert.equal(findHost(owners, 'a.b.example.com'), 'longer');
  assert.equal(findHost(owners, 'b.example.com'), 'wildcard');
});

test('ignores case and a trailing dot', () => {
  assert.equal(findHost(owners, 'SHOP.Example.com.'), 'exact');
  assert.equal(findHost(owners, 'Api.EXAMPLE.com'), 'wildcard');
});

test('finds no owner for a text that is not a host name', () => {
  for (const name of ['', '.', '..', '*.example.com', '*', 'com', 'shop.example.com..']) {
    assert.equal(findHost(owners, name), undefined, name);
  }
  assert.equal(findHost(owners, 'localhost'), 'one label');
});

test('parses names, wildcards and A-labels', () => {
  const hosts = [
    'a',
    'shop.example.com',
    '*.example.com',
    'xn--bcher-kva.example',
    '1.example',
    `${'a'.repeat(63)}.example`,
  ];
  for (const host of hosts) assert.equal(parseHost(host), host);
  assert.equal(parseHost('*.Shop.EXAMPLE.com'), '*.shop.example.com');
});

test('rejects texts that are not hosts', () => {
  const hosts = ['', '.', '*', '*.', '**.example.com', 'a.*.example.com', '*a.example.com', 'a*.example.com'];
  const more = [
    'example.com.',
    '.example.com',
    'a..b',
    'a b',
    ' a',
    'bücher.example',
    'a_b.example',
    '-a.example',
    'a-',
  ];
  const addresses = ['192.0.2.1', '1.2', '*.1', '::1', 'a.example:443', 'https://a.example', 'a.example/', 'a,b'];
  const long = [`${'a'.repeat(64)}.example`, `${'a.'.repeat(126)}aa`];
  for (const host of [...hosts, ...more, ...addresses, ...long]) assert.equal(parseHost(host), undefined, host);
});

test('an allowed wildcard permits subdomains and wildcards at any depth, but not the domain itself', () => {
  const allowed = ['*.shop.example', 'api.example'];
  for (const host of ['a.shop.example', 'a.b.shop.example', '*.shop.example', '*.b.shop.example', 'api.example']) {
    assert.ok(isHostAllowed(host, allowed), host);
  }
  for (const host of ['shop.example', 'myshop.example', '*.example', 'a.api.example', '*.api.example', 'example']) {
    assert.ok(!isHostAllowed(host, allowed), host);
  }
  assert.ok(!isHostAllowed('a.example', []));
});
