import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileRouter, findRoute, type HttpRoute, patchRouter, type RoutedRequest, type Router } from '@weir/model';
import { exactMatch, httpRoute, prefixMatch } from '../fixtures/http-routes.ts';

function request(path: string, part: Partial<RoutedRequest> = {}): RoutedRequest {
  return { method: 'GET', host: 'a.test', path, query: '', header: () => undefined, ...part };
}

function idOf(router: Router, path: string, part: Partial<RoutedRequest> = {}): string | undefined {
  return findRoute(router, request(path, part))?.route.id;
}

test('a prefix matches whole segments only', () => {
  const router = compileRouter([httpRoute('a', { matches: [prefixMatch('/a/b')] })]);
  for (const path of ['/a/b', '/a/b/', '/a/b/c', '/a/b//c', '/a/b/;x']) assert.equal(idOf(router, path), 'a', path);
  for (const path of ['/', '/a', '/a/', '/a/bc', '/a/b;x', '/a/b%20', '/a//b', '//a/b', '/A/b', '/c/a/b', '*']) {
    assert.equal(idOf(router, path), undefined, path);
  }
});

test('a trailing slash of a prefix has no effect', () => {
  const router = compileRouter([httpRoute('a', { matches: [prefixMatch('/a/')] })]);
  for (const path of ['/a', '/a/', '/a/b']) assert.equal(idOf(router, path), 'a', path);
  assert.equal(idOf(router, '/ab'), undefined);
});

test('segments with the same hash lead to different routes', () => {
  const router = compileRouter([
    httpRoute('a', { matches: [prefixMatch('/AaAa')] }),
    httpRoute('b', { matches: [prefixMatch('/BBBB/x')] }),
    httpRoute('c', { matches: [prefixMatch('/AaBB')] }),
  ]);
  const cases = {
    '/AaAa/x': 'a',
    '/BBBB/x': 'b',
    '/AaBB': 'c',
    '/BBBB': undefined,
    '/BBAa': undefined,
    '/BBAa/x': undefined,
  };
  for (const [path, id] of Object.entries(cases)) assert.equal(idOf(router, path), id, path);
});

test('an exact path matches no other path', () => {
  const router = compileRouter([httpRoute('a', { matches: [exactMatch('/a/')] })]);
  assert.equal(idOf(router, '/a/'), 'a');
  for (const path of ['/a', '/a/b', '/a//', '/']) assert.equal(idOf(router, path), undefined, path);
});

test('an exact path beats the longest prefix, and a longer prefix beats a shorter prefix', () => {
  const router = compileRouter([
    httpRoute('root', { matches: [prefixMatch('/')] }),
    httpRoute('short', { matches: [prefixMatch('/a', { method: 'GET' })] }),
    httpRoute('long', { matches: [prefixMatch('/a/b')] }),
    httpRoute('exact', { matches: [exactMatch('/a/b')] }),
  ]);
  const cases = { '/': 'root', '/x': 'root', '/a': 'short', '/a/c': 'short', '/a/b': 'exact', '/a/b/c': 'long' };
  for (const [path, id] of Object.entries(cases)) assert.equal(idOf(router, path), id, path);
});

test('a request that does not fit the longest prefix falls back to a shorter prefix of the same host', () => {
  const router = compileRouter([
    httpRoute('any', { matches: [prefixMatch('/')] }),
    httpRoute('post', { matches: [prefixMatch('/a/b', { method: 'POST' }), exactMatch('/a/b', { method: 'PUT' })] }),
  ]);
  assert.equal(idOf(router, '/a/b'), 'any');
  assert.equal(idOf(router, '/a/b', { method: 'POST' }), 'post');
  assert.equal(idOf(router, '/a/b', { method: 'PUT' }), 'post');
});

test('for one path, a method beats headers, headers beat parameters, then age and id decide', () => {
  const header = { kind: 'present', name: 'x-a' } as const;
  const parameter = { kind: 'present', name: 'q' } as const;
  const routes: HttpRoute[] = [
    httpRoute('plain', { createdAt: 1, matches: [prefixMatch('/')] }),
    httpRoute('z', { createdAt: 0, matches: [prefixMatch('/')] }),
    httpRoute('y', { createdAt: 0, matches: [prefixMatch('/')] }),
    httpRoute('query', { createdAt: 9, matches: [prefixMatch('/', { query: [parameter] })] }),
    httpRoute('header', { createdAt: 9, matches: [prefixMatch('/', { headers: [header] })] }),
    httpRoute('method', { createdAt: 9, matches: [prefixMatch('/', { method: 'PUT' })] }),
  ];
  for (const order of [routes, routes.toReversed()]) {
    const router = compileRouter(order);
    const everything = { method: 'PUT', query: '?q', header: (): string => '' };
    assert.equal(idOf(router, '/', everything), 'method');
    assert.equal(idOf(router, '/', { ...everything, method: 'GET' }), 'header');
    assert.equal(idOf(router, '/', { query: '?q' }), 'query');
    assert.equal(idOf(router, '/'), 'y');
  }
});

test('compares header values and decoded parameters exactly', () => {
  const matches = [
    prefixMatch('/', {
      headers: [{ kind: 'exact', name: 'x-version', value: '2' }],
      query: [{ kind: 'exact', name: 'größe', value: 'a b&c' }],
    }),
  ];
  const router = compileRouter([httpRoute('a', { matches })]);
  const version = (value: string) => ({ header: (name: string) => (name === 'x-version' ? value : undefined) });
  const fitting = [
    '?gr%C3%B6%c3%9Fe=a+b%26c',
    '?x&gr%C3%B6%C3%9Fe=a%20b%26c&y=1',
    '?gr%C3%B6%C3%9Fe=a+b%26c&gr%C3%B6%C3%9Fe=2',
  ];
  for (const query of fitting) assert.equal(idOf(router, '/', { ...version('2'), query }), 'a', query);
  const other = ['', '?', '?gr%C3%B6%C3%9Fe', '?gr%C3%B6%C3%9Fe=2&gr%C3%B6%C3%9Fe=a+b%26c', '?gr%ffe=a+b%26c', '?%'];
  for (const query of other) assert.equal(idOf(router, '/', { ...version('2'), query }), undefined, query);
  assert.equal(idOf(router, '/', { ...version('20'), query: fitting[0] as string }), undefined);
});

test('reads no header for routes that match by host and path only', () => {
  const router = compileRouter([httpRoute('a', { matches: [exactMatch('/a'), prefixMatch('/', { method: 'GET' })] })]);
  const header = (): never => assert.fail('a header was read');
  assert.equal(idOf(router, '/a', { header }), 'a');
  assert.equal(idOf(router, '/b', { header }), 'a');
  assert.equal(idOf(router, '/b', { header, method: 'PUT' }), undefined);
});

test('the most specific host decides alone', () => {
  const router = compileRouter([
    httpRoute('exact', { hosts: ['a.test'], matches: [prefixMatch('/exact')] }),
    httpRoute('wildcard', { tenant: 'other', hosts: ['*.test'] }),
    httpRoute('default', { tenant: 'third' }),
  ]);
  assert.equal(idOf(router, '/exact'), 'exact');
  assert.equal(idOf(router, '/'), undefined);
  assert.equal(idOf(router, '/', { host: 'b.test' }), 'wildcard');
  for (const host of ['test', 'a.b.test', 'a.example', '', '[::1]', '.test']) {
    assert.equal(idOf(router, '/', { host }), 'default', host);
  }
});

test('OPTIONS * matches only routes for the whole host', () => {
  const router = compileRouter([
    httpRoute('exact', { matches: [exactMatch('/')] }),
    httpRoute('prefix', { matches: [prefixMatch('/a')] }),
    httpRoute('host', { matches: [prefixMatch('/')] }),
  ]);
  assert.equal(idOf(router, '*', { method: 'OPTIONS' }), 'host');
});

test('Services of one tenant share the paths of a host, and another tenant gets none of them', () => {
  const router = compileRouter([
    httpRoute('web', { createdAt: 1, hosts: ['a.test'] }),
    httpRoute('api', { createdAt: 3, hosts: ['a.test'], matches: [prefixMatch('/api')] }),
    httpRoute('thief', { tenant: 'other', createdAt: 2, hosts: ['a.test'], matches: [prefixMatch('/api/login')] }),
  ]);
  assert.equal(idOf(router, '/api/login'), 'api');
  patchRouter(router, { removed: ['web', 'api'], put: [] });
  assert.equal(idOf(router, '/api/login'), 'thief');
});

test('a patch adds, replaces and removes routes', () => {
  const router = compileRouter([httpRoute('a', { hosts: ['a.test', '*.test'] }), httpRoute('b')]);
  patchRouter(router, { removed: [], put: [httpRoute('a', { hosts: ['*.test'], matches: [prefixMatch('/new')] })] });
  assert.equal(idOf(router, '/new'), 'a');
  assert.equal(idOf(router, '/'), undefined);
  patchRouter(router, { removed: ['a', 'unknown'], put: [] });
  assert.equal(idOf(router, '/new'), 'b');
  patchRouter(router, { removed: ['b'], put: [httpRoute('b', { hosts: ['b.test'] })] });
  assert.equal(idOf(router, '/'), undefined);
  assert.equal(idOf(router, '/', { host: 'b.test' }), 'b');
  assert.deepEqual([...router.routes.keys()], ['b']);
});

test('a patch of one host recompiles no other host', () => {
  const router = compileRouter([
    httpRoute('a', { hosts: ['a.test'] }),
    httpRoute('b', { hosts: ['b.test'] }),
    httpRoute('w', { hosts: ['*.test'] }),
    httpRoute('d'),
  ]);
  const found = (host: string) => findRoute(router, request('/', { host }));
  const hosts = ['b.test', 'w.test', 'd.example'];
  const before = hosts.map(found);
  const a = found('a.test');
  patchRouter(router, { removed: [], put: [httpRoute('a', { hosts: ['a.test'] })] });
  // A host that was not recompiled returns the same object.
  hosts.forEach((host, index) => {
    assert.equal(found(host), before[index], host);
  });
  assert.notEqual(found('a.test'), a);
});

test('10,000 routes over 1,000 hosts each get their requests', () => {
  const routes: HttpRoute[] = [];
  for (let host = 0; host < 1_000; host += 1) {
    for (let path = 0; path < 10; path += 1) {
      routes.push(httpRoute(`${host}/${path}`, { hosts: [`h${host}.test`], matches: [prefixMatch(`/p${path}`)] }));
    }
  }
  const router = compileRouter(routes);
  for (const { id, hosts, matches } of routes) {
    const path = matches[0]?.path.value;
    assert.equal(idOf(router, `${path}/x`, { host: hosts[0] as string }), id);
    assert.equal(idOf(router, `${path}x`, { host: hosts[0] as string }), undefined);
  }
});
