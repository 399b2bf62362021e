import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileHosts, isHostAllowed, parseHost } from '@weir/model';

const table = compileHosts([
  ['shop.example.com', 'exact'],
  ['*.example.com', 'wildcard'],
  ['*.b.example.com', 'longer'],
  ['localhost', 'one label'],
]);

test('an exact host beats a wildcard', () => {
  assert.equal(table.find('shop.example.com'), 'exact');
  assert.equal(table.find('api.example.com'), 'wildcard');
});

test('a wildcard is for one label, neither none nor two', () => {
  assert.equal(table.find('example.com'), undefined);
  assert.equal(table.find('a.c.example.com'), undefined);
  assert.equal(table.find('.example.com'), undefined);
});

test('the longest wildcard wins', () => {
  assert.equal(table.find('a.b.example.com'), 'longer');
  assert.equal(table.find('b.example.com'), 'wildcard');
});

test('case and a dot at the end do not matter', () => {
  assert.equal(table.find('SHOP.Example.com.'), 'exact');
  assert.equal(table.find('Api.EXAMPLE.com'), 'wildcard');
});

test('what is no name belongs to nobody', () => {
  for (const name of ['', '.', '..', '*.example.com', '*', 'com', 'shop.example.com..']) {
    assert.equal(table.find(name), undefined, name);
  }
  assert.equal(table.find('localhost'), 'one label');
});

test('the first of two owners of a host keeps it', () => {
  assert.equal(
    compileHosts([
      ['a.example', 1],
      ['a.example', 2],
    ]).find('a.example'),
    1,
  );
});

test('hosts that can be: names, wildcards, A-labels', () => {
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

test('hosts that cannot be are refused', () => {
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
  const places = ['192.0.2.1', '1.2', '*.1', '::1', 'a.example:443', 'https://a.example', 'a.example/', 'a,b'];
  const long = [`${'a'.repeat(64)}.example`, `${'a.'.repeat(126)}aa`];
  for (const host of [...hosts, ...more, ...places, ...long]) assert.equal(parseHost(host), undefined, host);
});

test('what a policy allows holds names and wildcards below it at any depth, and not itself', () => {
  const allowed = ['*.shop.example', 'api.example'];
  for (const host of ['a.shop.example', 'a.b.shop.example', '*.shop.example', '*.b.shop.example', 'api.example']) {
    assert.ok(isHostAllowed(host, allowed), host);
  }
  for (const host of ['shop.example', 'myshop.example', '*.example', 'a.api.example', '*.api.example', 'example']) {
    assert.ok(!isHostAllowed(host, allowed), host);
  }
  assert.ok(!isHostAllowed('a.example', []));
});
