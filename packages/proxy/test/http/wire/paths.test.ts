// Tests the path that endpoints receive: the same cases through the model, through HTTP/1.1 and through HTTP/2.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as requestHttp1 } from 'node:http';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import {
  compileRouter,
  findRoute,
  type HttpRoute,
  parseRequestTarget,
  REQUEST_TARGET_REFUSAL_STATUS,
  rewriteRequest,
  usesPath,
} from '@weir/model';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import type { TestService } from '../../fixtures/tables.ts';

/** The host of one Service, which gets all paths. */
const WHOLE = 'whole.example';
/** The host that `web` shares with `api` (path prefix /api) and `old` (path prefix /old, which is removed). */
const PARTS = 'parts.example';

interface Case {
  readonly path: string;
  /** What an endpoint of `WHOLE` receives; `path` by default. */
  readonly whole?: string;
  /** Which Service of `PARTS` gets the request, and what its endpoint receives; or the status of the refusal. */
  readonly parts: string;
  /** Whether only HTTP/1.1 can send the target. */
  readonly isOnlyHttp1?: boolean;
}

const CASES: readonly Case[] = [
  { path: '/', parts: 'web /' },
  { path: '/api', parts: 'api /api' },
  { path: '/api/', parts: 'api /api/' },
  { path: '/apis', parts: 'web /apis' },
  { path: '/old', parts: 'old /' },
  { path: '/old/', parts: 'old /' },
  { path: '/old/a?b=/../c', parts: 'old /a?b=/../c' },
  // The case of letters matters in paths (RFC 3986 §6.2.2.1), but not in percent-encodings.
  { path: '/API/a', parts: 'web /API/a' },
  { path: '/api/%c3%a4', parts: 'api /api/%C3%A4' },
  // RFC 3986 §6.2.2.2: unreserved characters are decoded, once.
  { path: '/%61pi/a', parts: 'api /api/a' },
  { path: '/%2561pi/a', parts: 'web /%2561pi/a' },
  { path: '/%41PI', parts: 'web /API' },
  // RFC 3986 §6.2.2.3: dot segments are resolved.
  { path: '/a/../api/b', parts: 'api /api/b' },
  { path: '/a/%2e%2E/api/b', parts: 'api /api/b' },
  { path: '/api/../b', parts: 'web /b' },
  { path: '/api/%2e%2e/b', parts: 'web /b' },
  { path: '/old/../api', parts: 'api /api' },
  { path: '/./api/./b/.', parts: 'api /api/b/' },
  { path: '/../api', parts: '400' },
  { path: '/%2e%2e/api', parts: '400' },
  { path: '/old/../../api', parts: '400' },
  // Endpoints do not agree on whether an encoded slash or backslash separates segments.
  { path: '/api%2fb', parts: '400' },
  { path: '/%2Fapi', parts: '400' },
  { path: '/b/%2e%2e%2fapi', parts: '400' },
  { path: '/api%5cb', parts: '400' },
  { path: '/api\\b', whole: '400', parts: '400' },
  // An empty segment is a segment.
  { path: '//api/b', parts: 'web //api/b' },
  { path: '/api//b', parts: 'api /api//b' },
  { path: '//', parts: 'web //' },
  // Parameters belong to their segment; a dot segment with a parameter is refused.
  { path: '/api;v=1/b', parts: 'web /api;v=1/b' },
  { path: '/api/b;v=1', parts: 'api /api/b;v=1' },
  { path: '/b/..;/api', parts: '400' },
  { path: '/b/..%3b/api', parts: '400' },
  { path: '/%00api', parts: '400' },
  { path: '/%zz', parts: '400' },
  { path: '/api#b', whole: '400', parts: '400' },
  { path: `http://${WHOLE}/a/../api/b?c`, whole: '/a/../api/b?c', parts: '400', isOnlyHttp1: true },
  { path: `http://${WHOLE}?c`, whole: '/?c', parts: '400', isOnlyHttp1: true },
  { path: `http://${PARTS}/a/../api/b?c`, whole: '400', parts: 'api /api/b?c', isOnlyHttp1: true },
  { path: `HTTP://Parts.Example:80/%61pi`, whole: '400', parts: 'api /api', isOnlyHttp1: true },
];

const wholeOf = ({ path, whole = path }: Case): string => (whole === '400' ? '400' : `whole ${whole}`);

let fleet: Fleet;
const stops: (() => void)[] = [];

async function serviceOf(name: string, over: Partial<TestService>): Promise<TestService> {
  const server = createServer((request, response) => response.end(`${name} ${request.url}`)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const endpoints = [{ address: '127.0.0.1', port }];
  return { name, port: PORT, endpoints, shared: true, ...over, settings: { httpPorts: [PORT], ...over.settings } };
}

before(async () => {
  fleet = await startFleet();
  const parts = (name: string, settings: TestService['settings']): Promise<TestService> =>
    serviceOf(name, { settings: { hosts: [PARTS], ...settings } });
  await fleet.serve(
    await serviceOf('whole', { settings: { hosts: [WHOLE] } }),
    await parts('web', {}),
    await parts('api', { pathPrefix: '/api' }),
    await parts('old', { pathPrefix: '/old', stripPrefix: true }),
  );
  await (await fleet.proxy()).ready;
});
after(async () => {
  for (const stop of stops) stop();
  await fleet[Symbol.asyncDispose]();
});

test('the model sends the path that it has matched, and changes no path that it does not match', () => {
  const route = (id: string, host: string, path: string, filters: HttpRoute['filters'] = []): HttpRoute => ({
    id,
    tenant: 'shop',
    createdAt: 0,
    hosts: [host],
    matches: [{ path: { kind: 'prefix', value: path }, method: null, headers: [], query: [] }],
    filters,
    backends: [],
    timeouts: { requestMs: null, backendRequestMs: null },
  });
  const router = compileRouter([
    route('whole', WHOLE, '/'),
    route('web', PARTS, '/'),
    route('api', PARTS, '/api'),
    route('old', PARTS, '/old', [{ kind: 'rewrite', host: null, path: { kind: 'prefix', value: '/' } }]),
  ]);
  const send = (host: string, path: string): string => {
    const target = parseRequestTarget('GET', path, host, { usesPath: (name) => usesPath(router, name) });
    if (typeof target === 'string') return String(REQUEST_TARGET_REFUSAL_STATUS[target]);
    const found = findRoute(router, { ...target, method: 'GET', header: () => undefined });
    assert.ok(found !== undefined, path);
    const { rewrite } = found.filters;
    return `${found.route.id} ${rewrite === undefined ? target.text : rewriteRequest(rewrite, found.match, target).text}`;
  };
  for (const each of CASES) {
    // The parser of HTTP/1.1 refuses a backslash and a fragment before the path is matched.
    if (each.whole !== '400' || each.isOnlyHttp1 === true)
      assert.equal(send(WHOLE, each.path), wholeOf(each), each.path);
    assert.equal(send(PARTS, each.path), each.parts, each.path);
  }
});

test('an HTTP/1.1 request reaches the endpoint with the path of the table', async () => {
  const send = async (host: string, path: string): Promise<string> => {
    // `path` of node:http allows no backslash, but the request target may be written as it is.
    const request = requestHttp1({ host: fleet.addressOf(), port: PORT, agent: false, headers: { host } });
    request.path = path;
    request.end();
    const [response] = await once(request, 'response');
    const body = await text(response);
    return response.statusCode === 200 ? body : String(response.statusCode);
  };
  for (const each of CASES) {
    assert.equal(await send(WHOLE, each.path), wholeOf(each), each.path);
    assert.equal(await send(PARTS, each.path), each.parts, each.path);
  }
});

test('an HTTP/2 request reaches the endpoint with the path of the table', async () => {
  const session = connect(`http://${fleet.addressOf()}:${PORT}`);
  stops.push(() => session.destroy());
  const send = async (authority: string, path: string): Promise<string> => {
    const stream = session.request({ ':authority': authority, ':path': path });
    const [{ ':status': status }] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    const body = await text(stream);
    return Number(status) === 200 ? body : String(status);
  };
  // The first request decides to which Service the connection belongs, and a refused one would end the connection.
  for (const each of CASES.filter(({ isOnlyHttp1 }) => isOnlyHttp1 !== true)) {
    assert.equal(await send(WHOLE, each.path), wholeOf(each), each.path);
    assert.equal(await send(PARTS, each.path), each.parts, each.path);
  }
});
