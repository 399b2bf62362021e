import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compileRouter,
  findRoute,
  type HttpMatch,
  type HttpRoute,
  httpRouteMistakes,
  parseRequestTarget,
  patchRouter,
  type RoutedRequest,
  usesPath,
} from '@weir/model';
import fc from 'fast-check';
import { httpRoute } from '../fixtures/http-routes.ts';

/** `Aa` and `BB` have the same hash. */
const SEGMENTS = ['a', 'b', 'ab', 'a;x', '%20', 'Aa', 'BB'];
const routePaths = fc.array(fc.constantFrom(...SEGMENTS), { maxLength: 3 }).map((segments) => `/${segments.join('/')}`);
const pathMatches = fc.record({
  kind: fc.constantFrom('exact', 'prefix'),
  value: fc.oneof(routePaths, routePaths.map(withSlash)),
});

function withSlash(path: string): string {
  return path === '/' ? path : `${path}/`;
}

const fieldMatches = fc.uniqueArray(
  fc.oneof(
    fc.record({ kind: fc.constant('present'), name: fc.constantFrom('x', 'y') }),
    fc.record({ kind: fc.constant('exact'), name: fc.constantFrom('x', 'y'), value: fc.constantFrom('1', '2') }),
  ),
  { maxLength: 2, selector: ({ name }) => name },
);
const matches: fc.Arbitrary<HttpMatch> = fc.record({
  path: pathMatches,
  method: fc.constantFrom(null, null, 'GET', 'PUT'),
  headers: fc.oneof(fc.constant([]), fieldMatches),
  query: fc.oneof(fc.constant([]), fieldMatches),
});

const HOSTS = ['a.test', 'b.test', '*.test', 'c.a.test', '*.a.test'];
const routes: fc.Arbitrary<HttpRoute> = fc
  .record({
    id: fc.nat(15).map(String),
    tenant: fc.constantFrom('shop', 'shop', 'shop', 'other'),
    createdAt: fc.nat(2),
    hosts: fc.oneof(fc.constant([]), fc.uniqueArray(fc.constantFrom(...HOSTS), { minLength: 1, maxLength: 3 })),
    matches: fc.array(matches, { maxLength: 3 }),
  })
  .map((route) => httpRoute(route.id, route));

const fieldValues = fc.record({ x: fc.constantFrom(undefined, '1', '2'), y: fc.constantFrom(undefined, '1', '2') });
type FieldValues = Readonly<Record<string, string | undefined>>;
const requestPaths = fc.oneof(
  fc.array(fc.constantFrom(...SEGMENTS, ''), { maxLength: 5 }).map((segments) => `/${segments.join('/')}`),
  fc.constant('*'),
);

interface RandomRequest extends RoutedRequest {
  readonly parameters: FieldValues;
}

const requests: fc.Arbitrary<RandomRequest> = fc
  .record({
    method: fc.constantFrom('GET', 'PUT', 'POST'),
    host: fc.constantFrom('a.test', 'b.test', 'd.test', 'c.a.test', 'd.a.test', 'test', 'x', ''),
    path: requestPaths,
    headers: fieldValues,
    parameters: fieldValues,
  })
  .map(({ method, host, path, headers, parameters }) => {
    const pairs = Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : `${name}=${value}`,
    );
    const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`;
    return { method, host, path, query, parameters, header: (name) => (headers as FieldValues)[name] };
  });

/** Returns the id of the route and the position of its match, by sorting all matches that fit as the Gateway API prescribes. */
function naiveFind(all: readonly HttpRoute[], request: RandomRequest): string | undefined {
  const named = all.flatMap((route) => (route.hosts.length === 0 ? ['*'] : route.hosts));
  const wildcard = request.host.replace(/^[^.]+/, '*');
  const host = [request.host, wildcard, '*'].find((candidate) => named.includes(candidate));
  const ofHost = all.filter(({ hosts }) => (hosts.length === 0 ? host === '*' : hosts.includes(host as string)));
  const oldest = [...ofHost].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))[0];
  const fitting = ofHost
    .filter(({ tenant }) => tenant === oldest?.tenant)
    .flatMap((route) => {
      const conditions = route.matches.length > 0 ? route.matches : [EVERY_REQUEST];
      return conditions.map((match, position) => ({ route, match, position }));
    })
    .filter(({ match }) => naiveFits(match, request));
  fitting.sort(
    ({ route: a, match: m, position: i }, { route: b, match: n, position: j }) =>
      Number(n.path.kind === 'exact') - Number(m.path.kind === 'exact') ||
      segmentsOf(n.path.value).length - segmentsOf(m.path.value).length ||
      Number(m.method === null) - Number(n.method === null) ||
      n.headers.length - m.headers.length ||
      n.query.length - m.query.length ||
      a.createdAt - b.createdAt ||
      (a.id === b.id ? i - j : a.id < b.id ? -1 : 1),
  );
  const best = fitting[0];
  return best === undefined ? undefined : `${best.route.id} ${best.position}`;
}

const EVERY_REQUEST: HttpMatch = { path: { kind: 'prefix', value: '/' }, method: null, headers: [], query: [] };

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

function naiveFits({ path, method, headers, query }: HttpMatch, request: RandomRequest): boolean {
  const prefix = path.value.replace(/\/$/, '');
  const isOnPath =
    path.kind === 'exact'
      ? request.path === path.value
      : prefix === '' || request.path === prefix || request.path.startsWith(`${prefix}/`);
  return (
    isOnPath &&
    (method === null || method === request.method) &&
    headers.every((header) => naiveFitsField(header, request.header(header.name))) &&
    query.every((parameter) => naiveFitsField(parameter, request.parameters[parameter.name]))
  );
}

function naiveFitsField(match: HttpMatch['headers'][number], value: string | undefined): boolean {
  return value !== undefined && (match.kind === 'present' || match.value === value);
}

function foundIn(router: ReturnType<typeof compileRouter>, request: RandomRequest): string | undefined {
  const found = findRoute(router, request);
  return found === undefined ? undefined : `${found.route.id} ${Math.max(0, found.route.matches.indexOf(found.match))}`;
}

test('findRoute agrees with a naive matcher, also after patches', () => {
  const patches = fc.record({
    removed: fc.array(fc.nat(15).map(String), { maxLength: 3 }),
    put: fc.array(routes, { maxLength: 6 }),
  });
  fc.assert(
    fc.property(
      fc.array(patches, { minLength: 1, maxLength: 4 }),
      fc.array(requests, { maxLength: 12 }),
      (steps, asked) => {
        const router = compileRouter([]);
        const current = new Map<string, HttpRoute>();
        for (const step of steps) {
          for (const id of step.removed) current.delete(id);
          for (const route of step.put) current.set(route.id, route);
          patchRouter(router, step);
          for (const request of asked) {
            const expected = naiveFind([...current.values()], request);
            assert.equal(foundIn(router, request), expected);
            assert.equal(foundIn(compileRouter([...current.values()]), request), expected);
          }
        }
      },
    ),
    { numRuns: 1_500 },
  );
});

test('the random routes are valid', () => {
  fc.assert(fc.property(routes, (route) => assert.deepEqual(httpRouteMistakes(route), [])));
});

test('the path of a request decides nothing if no route of its host uses the path', () => {
  const withoutPaths = routes.map((route): HttpRoute => {
    const path = { kind: 'prefix', value: '/' } as const;
    return { ...route, filters: [], matches: route.matches.map((match) => ({ ...match, path })) };
  });
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ weight: 3, arbitrary: withoutPaths }, routes)),
      requests,
      fc.string(),
      (all, request, text) => {
        const router = compileRouter(all);
        if (usesPath(router, request.host)) return;
        assert.equal(foundIn(router, { ...request, path: `/${text}` }), foundIn(router, { ...request, path: '/' }));
      },
    ),
    { numRuns: 1_500 },
  );
});

test('no spelling of a request path crosses the border of a prefix', () => {
  const spellings = fc
    .array(fc.constantFrom('/', '.', '%2e', 'a', '%61', 'b', ';x', '//', '..', '%2f', '\\', '%25'), { maxLength: 12 })
    .map((parts) => `/${parts.join('')}`);
  const router = compileRouter([
    httpRoute('a', { matches: [{ ...EVERY_REQUEST, path: { kind: 'prefix', value: '/a/b' } }] }),
  ]);
  fc.assert(
    fc.property(spellings, (target) => {
      const parsed = parseRequestTarget('GET', target, 'a');
      if (typeof parsed === 'string') return;
      const isFound = findRoute(router, { ...parsed, method: 'GET', header: () => undefined }) !== undefined;
      // The endpoint gets `parsed.text`, so the decision must be right for the resource that a standard resolver sees in this text.
      const { pathname } = new URL(`http://a${parsed.text}`);
      assert.equal(isFound, pathname === '/a/b' || pathname.startsWith('/a/b/'), target);
    }),
    { numRuns: 5_000 },
  );
});
