import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ClientSide,
  compileRouter,
  findRoute,
  type HttpMatch,
  type HttpRoute,
  locationFor,
  type PathReplacement,
  parseRequestTarget,
  type RedirectFilter,
  type RequestTarget,
  type RouteFilters,
  rewriteRequest,
} from '@weir/model';
import { exactMatch, httpRoute, prefixMatch } from '../fixtures/http-routes.ts';

function targetOf(text: string, host = 'a.test', method = 'GET'): RequestTarget {
  const target = parseRequestTarget(method, text, host);
  assert.ok(typeof target === 'object', `${text}: ${target}`);
  return target;
}

function filtersOf(filters: HttpRoute['filters']): RouteFilters {
  const router = compileRouter([httpRoute('a', { filters })]);
  const found = findRoute(router, { method: 'GET', host: 'a', path: '/', query: '', header: () => undefined });
  assert.ok(found);
  return found.filters;
}

function rewrittenPath(path: PathReplacement, match: HttpMatch, target: string): string {
  return rewriteRequest({ kind: 'rewrite', host: null, path }, match, targetOf(target)).text;
}

test('replaces a prefix, whatever slashes its ends have', () => {
  const cases: readonly (readonly [prefix: string, replacement: string, target: string, sent: string])[] = [
    ['/foo', '/xyz', '/foo/bar', '/xyz/bar'],
    ['/foo', '/xyz/', '/foo/bar', '/xyz/bar'],
    ['/foo/', '/xyz', '/foo/bar', '/xyz/bar'],
    ['/foo/', '/xyz/', '/foo/bar', '/xyz/bar'],
    ['/foo', '/xyz', '/foo', '/xyz'],
    ['/foo/', '/xyz', '/foo/', '/xyz/'],
    ['/foo', '/', '/foo/bar', '/bar'],
    ['/foo', '/', '/foo/', '/'],
    ['/foo', '/', '/foo', '/'],
    ['/', '/xyz', '/bar', '/xyz/bar'],
    ['/', '/xyz', '/', '/xyz/'],
    ['/foo', '/xyz', '/foo?q=/foo', '/xyz?q=/foo'],
    ['/foo', '/xyz', '/foo//bar', '/xyz//bar'],
    ['/foo', '/xyz', '/a/../foo/%7ebar', '/xyz/~bar'],
  ];
  for (const [prefix, value, target, sent] of cases) {
    const at = `${prefix} by ${value} in ${target}`;
    assert.equal(rewrittenPath({ kind: 'prefix', value }, prefixMatch(prefix), target), sent, at);
  }
});

test('replaces the full path and keeps the query', () => {
  assert.equal(rewrittenPath({ kind: 'full', value: '/x' }, exactMatch('/a'), '/a?b'), '/x?b');
});

test('rewrites host and path independently', () => {
  const target = targetOf('/a?b', 'A.test:8080');
  const rewrite = { kind: 'rewrite', host: null, path: null } as const;
  assert.deepEqual(rewriteRequest(rewrite, prefixMatch('/'), target), { authority: 'a.test:8080', text: '/a?b' });
  assert.deepEqual(rewriteRequest({ ...rewrite, host: 'b.test' }, prefixMatch('/'), target), {
    authority: 'b.test',
    text: '/a?b',
  });
  const path = { kind: 'full', value: '/x' } as const;
  assert.deepEqual(rewriteRequest({ ...rewrite, path }, prefixMatch('/'), targetOf('*', 'a.test', 'OPTIONS')), {
    authority: 'a.test',
    text: '*',
  });
});

const REDIRECT: RedirectFilter = { kind: 'redirect', scheme: null, host: null, port: null, path: null, status: 302 };
const HTTP: ClientSide = { scheme: 'http', listenerPort: 80 };
const HTTP_8080: ClientSide = { scheme: 'http', listenerPort: 8080 };
const HTTPS: ClientSide = { scheme: 'https', listenerPort: 443 };
const HTTPS_8443: ClientSide = { scheme: 'https', listenerPort: 8443 };

const LOCATIONS: readonly (readonly [redirect: Partial<RedirectFilter>, client: ClientSide, location: string])[] = [
  [{ scheme: 'https' }, HTTP, 'https://a.test/a/b?c'],
  [{ scheme: 'https' }, HTTP_8080, 'https://a.test/a/b?c'],
  [{ scheme: 'https', port: 8443 }, HTTP, 'https://a.test:8443/a/b?c'],
  [{ scheme: 'http' }, HTTPS_8443, 'http://a.test/a/b?c'],
  [{ host: 'b.test' }, HTTP, 'http://b.test/a/b?c'],
  [{ host: 'b.test' }, HTTPS, 'https://b.test/a/b?c'],
  [{ host: 'b.test' }, HTTP_8080, 'http://b.test:8080/a/b?c'],
  [{ port: 80 }, HTTP_8080, 'http://a.test/a/b?c'],
  [{ port: 443 }, HTTP, 'http://a.test:443/a/b?c'],
  [{ path: { kind: 'full', value: '/x' } }, HTTP, 'http://a.test/x?c'],
  [{ path: { kind: 'prefix', value: '/x' } }, HTTP, 'http://a.test/x/b?c'],
  [{ path: { kind: 'prefix', value: '/' } }, HTTP, 'http://a.test/b?c'],
];

for (const [redirect, client, location] of LOCATIONS) {
  test(`redirects port ${client.listenerPort} by ${JSON.stringify(redirect)} to ${location}`, () => {
    const found = locationFor(
      { ...REDIRECT, ...redirect },
      { match: prefixMatch('/a'), target: targetOf('/a/b?c', 'a.test:99'), client },
    );
    assert.equal(found, location);
  });
}

test('a path that begins with two slashes cannot name another host', () => {
  const request = { match: prefixMatch('/'), client: HTTP };
  assert.equal(locationFor(REDIRECT, { ...request, target: targetOf('//evil.test/a') }), 'http://a.test//evil.test/a');
  // A relative Location would be read as the host `evil.test`, so a request without a host gets none.
  assert.equal(locationFor(REDIRECT, { ...request, target: targetOf('//evil.test/a', '') }), undefined);
  const toHost: RedirectFilter = { ...REDIRECT, host: 'b.test' };
  assert.equal(locationFor(toHost, { ...request, target: targetOf('/a', '') }), 'http://b.test/a');
});

test('redirects OPTIONS * to the root, and an IPv6 host in brackets', () => {
  const request = { match: prefixMatch('/'), client: HTTPS_8443, target: targetOf('*', '[::1]', 'OPTIONS') };
  assert.equal(locationFor(REDIRECT, request), 'https://[::1]:8443/');
});

test('lists header edits of requests and answers in the order of the filters', () => {
  const filters = filtersOf([
    { kind: 'request-headers', set: [{ name: 'a', value: '1' }], add: [{ name: 'b', value: '2' }], remove: ['c'] },
    { kind: 'response-headers', set: [], add: [], remove: ['server'] },
    { kind: 'request-headers', set: [], add: [{ name: 'c', value: '3' }], remove: [] },
    { kind: 'rewrite', host: 'b.test', path: null },
  ]);
  assert.deepEqual(filters, {
    redirect: undefined,
    rewrite: { kind: 'rewrite', host: 'b.test', path: null },
    requestHeaders: [
      { kind: 'remove', name: 'c' },
      { kind: 'set', name: 'a', value: '1' },
      { kind: 'add', name: 'b', value: '2' },
      { kind: 'add', name: 'c', value: '3' },
    ],
    responseHeaders: [{ kind: 'remove', name: 'server' }],
  });
});
