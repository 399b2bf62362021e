import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMatcher, type HttpRouteEntry, patchMatcher } from '@weir/model';
import { RequestRouter } from '../../src/http/request-router.ts';
import { matchOf, routeEntry } from '../fixtures/http-routes.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { tableFor } from '../fixtures/tables.ts';
import { parseRequest } from './passes/heads.ts';

const ADDRESS = '192.0.2.1';

/** Returns a function that routes a request with these fields: to the name of the Service, or the reason of a refusal. */
function routerFor(routes: readonly HttpRouteEntry[]): (fields: readonly string[]) => string {
  const backend = { port: PORT, backendPort: 8080, endpoints: [], settings: { httpPorts: [8080] } };
  const services = [
    { ...backend, name: 'web' },
    { ...backend, name: 'canary' },
  ];
  const matcher = createMatcher(tableFor({ n1: ADDRESS }, services), 'n1');
  patchMatcher(
    matcher,
    routes.map((entry) => ({ kind: 'put', entry })),
  );
  let found = '';
  const upstreams = {
    get: (key: string) => {
      found = matcher.routes.get(key)?.service.name ?? '';
      return undefined;
    },
  };
  const router = new RequestRouter({ listener: `TCP/${ADDRESS}/${PORT}`, matcher, upstreams, random: () => 0 });
  return (fields) => {
    found = '';
    const head = parseRequest(Buffer.from(['GET / HTTP/1.1', 'Host: a.test', ...fields, '', ''].join('\r\n')));
    const routed = router.route(head, undefined);
    return found || String(routed);
  };
}

const isBeta = { kind: 'exact', name: 'x-beta', value: 'yes' } as const;

test('of several header fields with one name, the first decides about the route', () => {
  const route = routerFor([
    routeEntry('beta', { canary: 1 }, { matches: [matchOf('/', { headers: [isBeta] })] }),
    routeEntry('rest', { web: 1 }),
  ]);
  assert.equal(route(['X-Beta: yes', 'x-beta: no']), 'canary');
  assert.equal(route(['x-beta: no', 'X-BETA: yes']), 'web');
  assert.equal(route(['x-other: yes']), 'web');
  assert.equal(route(['x-BETA: yes']), 'canary');
});

test('16,000 conditions on the header fields of one host delay a request only for a short time', () => {
  const conditions = (id: number) =>
    Array.from({ length: 16 }, (_, index) =>
      matchOf('/', { headers: [{ kind: 'exact', name: 'x-user', value: `${id}-${index}` }] }),
    );
  const entries = Array.from({ length: 1_000 }, (_, id) =>
    routeEntry(`r${id}`, { canary: 1 }, { matches: conditions(id) }),
  );
  const route = routerFor([...entries, routeEntry('rest', { web: 1 })]);
  const fields = [...Array.from({ length: 60 }, (_, index) => `X-Field-${index}: value`), 'X-User: other'];
  const durations = Array.from({ length: 10 }, () => {
    const startedAt = performance.now();
    assert.equal(route(fields), 'web');
    return performance.now() - startedAt;
  });
  // Without an index of the fields, each condition would read all of them, and a request would take about 50 ms.
  assert.ok(Math.min(...durations) < 15, durations.join());
});
