import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compileRouter,
  findRoute,
  type HttpRoute,
  httpRouteMistakes,
  parseRequestTarget,
  patchRouter,
  usesPath,
} from '@weir/model';
import fc from 'fast-check';
import {
  EVERY_REQUEST,
  naiveFind,
  type RandomRequest,
  httpRequests as requests,
  httpRoutes as routes,
} from '../fixtures/arbitrary-http-routes.ts';
import { httpRoute } from '../fixtures/http-routes.ts';

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
