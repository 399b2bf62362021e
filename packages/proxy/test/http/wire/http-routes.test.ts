// Tests HTTP routes of the routing table, over HTTP/1.1 and HTTP/2: which backend gets each request, and what the filters change.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, request as requestHttp1 } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import type { HttpFilter, HttpRouteEntry } from '@weir/model';
import { eventually } from '@weir/testkit';
import { type Fleet, startFleet, waitForTable } from '../../fixtures/fleet.ts';
import { type Backend, matchOf, type Received, routeEntry, startBackend } from '../../fixtures/http-routes.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { ALL_REQUESTS, type LogLine } from '../../fixtures/logged-requests.ts';
import { SEEDED_WORKER } from '../../fixtures/seeded-worker.ts';
import { startServing } from '../../fixtures/services.ts';
import { type TestService, uidOf } from '../../fixtures/tables.ts';

interface Question {
  readonly host?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Ask = (question?: Question) => Promise<Answer>;

/** Starts a client that sends all requests over one connection. */
type StartClient = (context: TestContext, fleet: Fleet) => Ask;

const overHttp1: StartClient = (context, fleet) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  context.after(() => agent.destroy());
  return async ({ host = 'shop.example', path = '/', method = 'GET', headers, body } = {}) => {
    const to = { host: fleet.addressOf(), port: PORT, agent, path, method };
    const request = requestHttp1({ ...to, headers: { ...headers, host } }).end(body);
    const [response] = await once(request, 'response');
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  };
};

const overHttp2: StartClient = (context, fleet) => {
  let session: ClientHttp2Session | undefined;
  context.after(() => session?.destroy());
  return async ({ host = 'shop.example', path = '/', method = 'GET', headers, body } = {}) => {
    if (session === undefined || session.closed || session.destroyed)
      session = connect(`http://${fleet.addressOf()}:${PORT}`).on('error', () => undefined);
    const head = { ...headers, ':authority': host, ':path': path, ':method': method };
    const stream = session.request(head, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    const [received] = await once(stream, 'response');
    return { status: Number(received[':status']), headers: received, body: await text(stream) };
  };
};

const receivedIn = ({ status, body }: Answer): Received => {
  assert.equal(status, 200, body);
  return JSON.parse(body) as Received;
};

for (const [version, startClient] of [['HTTP/1.1', overHttp1] as const, ['HTTP/2', overHttp2] as const]) {
  describe(`an HTTP route over ${version}`, () => {
    /** Starts a fleet with the Services `web` and `canary` as backends. */
    async function serve(
      context: TestContext,
      routes: readonly HttpRouteEntry[],
      more: (backends: { readonly web: Backend; readonly canary: Backend }) => readonly TestService[] = () => [],
    ): Promise<{ readonly fleet: Fleet; readonly ask: Ask; readonly log: () => readonly LogLine[] }> {
      const fleet = await startFleet({ workerEntry: SEEDED_WORKER });
      const web = await startBackend('web');
      const canary = await startBackend('canary');
      context.after(async () => {
        await fleet[Symbol.asyncDispose]();
        await web[Symbol.asyncDispose]();
        await canary[Symbol.asyncDispose]();
      });
      fleet.route(...routes);
      await fleet.serve(web.service(), canary.service(), ...more({ web, canary }));
      let logged = '';
      const write = async (bytes: Uint8Array): Promise<void> => {
        logged += Buffer.from(bytes).toString();
      };
      await (await fleet.proxy({ accessLogOutput: { write } })).ready;
      const log = (): readonly LogLine[] =>
        logged
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as LogLine);
      return { fleet, ask: startClient(context, fleet), log };
    }

    test('divides 1,000 requests among its backends by weight', async (context) => {
      const { ask, fleet } = await serve(context, [routeEntry('r', { web: 3, canary: 1, idle: 0 })], ({ web }) => [
        { ...web.service(), name: 'idle' },
      ]);
      const counts = { web: 0, canary: 0 };
      for (let sent = 0; sent < 1_000; sent += 1) counts[receivedIn(await ask()).service as 'web' | 'canary'] += 1;
      // Five standard deviations of a binomial distribution around 250.
      assert.ok(Math.abs(counts.canary - 250) < 5 * Math.sqrt(1_000 * 0.25 * 0.75), JSON.stringify(counts));
      await eventually(async () => {
        const { web, canary, idle } = await fleet.usage();
        assert.deepEqual([web?.requests, canary?.requests, idle?.requests ?? 0], [counts.web, counts.canary, 0]);
      });
    });

    test('answers the share of a backend that cannot be used with 500, and that of a backend without endpoints with 503', async (context) => {
      const foreign = { service: uidOf({ namespace: 'other', name: 'foreign' }), port: 8080, weight: 1 };
      const { ask } = await serve(
        context,
        [
          routeEntry('half', { web: 1, missing: 1 }, { matches: [matchOf('/half')] }),
          routeEntry('none', { web: 0, canary: 0 }, { matches: [matchOf('/none')] }),
          routeEntry('foreign', {}, { matches: [matchOf('/foreign')], backends: [foreign] }),
          routeEntry('empty', { empty: 1 }, { matches: [matchOf('/empty')] }),
          routeEntry('rest', { web: 1 }),
        ],
        ({ web }) => [
          { ...web.service({ endpoints: [] }), name: 'empty' },
          { ...web.service(), name: 'foreign', namespace: 'other' },
        ],
      );
      assert.equal((await ask()).status, 200);
      const statuses: number[] = [];
      for (let sent = 0; sent < 60; sent += 1) statuses.push((await ask({ path: '/half' })).status);
      assert.deepEqual([...new Set(statuses)].sort(), [200, 500]);
      for (const path of ['/none', '/foreign']) {
        const { status, body } = await ask({ path, headers: { accept: 'application/json' } });
        assert.deepEqual([status, JSON.parse(body).reason], [500, 'no-backend'], path);
      }
      const { status, body } = await ask({ path: '/empty', headers: { accept: 'application/json' } });
      assert.deepEqual([status, JSON.parse(body).reason], [503, 'no-endpoints']);
    });

    test('answers the first request of a connection with 500 if its backend cannot be used', async (context) => {
      const { ask } = await serve(context, [routeEntry('none', { missing: 1, web: 0 })]);
      assert.equal((await ask()).status, 500);
    });

    test('chooses once for the first request of a connection', async (context) => {
      const { fleet } = await serve(context, [routeEntry('r', { web: 1, closed: 1 })], ({ web }) => [
        { ...web.service({ settings: { sourceRanges: ['192.0.2.0/24'] } }), name: 'closed' },
      ]);
      let forbidden = 0;
      for (let opened = 0; opened < 200; opened += 1)
        if ((await startClient(context, fleet)()).status === 403) forbidden += 1;
      // Five standard deviations around half. Two choices would refuse three quarters.
      assert.ok(Math.abs(forbidden - 100) < 36, `${forbidden} of 200`);
    });

    test('gets requests by exact path, method, header and query', async (context) => {
      const to = (name: string): Record<string, number> => ({ [name]: 1 });
      const { ask } = await serve(context, [
        routeEntry('rest', to('web')),
        routeEntry('exact', to('canary'), { matches: [{ ...matchOf('/a'), path: { kind: 'exact', value: '/a' } }] }),
        routeEntry('method', to('canary'), { matches: [matchOf('/b', { method: 'PUT' })] }),
        routeEntry('header', to('canary'), {
          matches: [
            matchOf('/c', {
              headers: [
                { kind: 'exact', name: 'x-beta', value: 'yes' },
                { kind: 'present', name: 'x-user' },
              ],
            }),
          ],
        }),
        routeEntry('query', to('canary'), {
          matches: [matchOf('/d', { query: [{ kind: 'exact', name: 'v', value: '2 b' }] })],
        }),
      ]);
      const cases: readonly (readonly [string, Question])[] = [
        ['canary', { path: '/a' }],
        ['canary', { path: '/a?x' }],
        ['web', { path: '/a/' }],
        ['web', { path: '/a/b' }],
        ['canary', { path: '/b/c', method: 'PUT' }],
        ['web', { path: '/b/c', method: 'POST' }],
        ['canary', { path: '/c', headers: { 'x-beta': 'yes', 'x-user': '1' } }],
        ['web', { path: '/c', headers: { 'x-beta': 'yes' } }],
        ['web', { path: '/c', headers: { 'x-beta': 'no', 'x-user': '1' } }],
        ['canary', { path: '/d?a=1&v=2%20b' }],
        ['web', { path: '/d?v=2' }],
        ['web', { path: '/d' }],
      ];
      for (const [service, question] of cases)
        assert.equal(receivedIn(await ask(question)).service, service, JSON.stringify(question));
    });

    test('rewrites host and path, and changes header fields of requests and answers', async (context) => {
      const filters: readonly HttpFilter[] = [
        { kind: 'rewrite', host: 'inner.example', path: { kind: 'prefix', value: '/v2' } },
        {
          kind: 'request-headers',
          set: [{ name: 'x-set', value: 'new' }],
          add: [{ name: 'x-add', value: 'more' }],
          remove: ['x-remove'],
        },
        { kind: 'response-headers', set: [{ name: 'x-answer', value: 'set' }], add: [], remove: ['x-from'] },
      ];
      const { ask } = await serve(context, [
        routeEntry('r', { web: 1 }, { matches: [matchOf('/api')], filters }),
        routeEntry('rest', { web: 1 }),
      ]);
      const headers = { 'x-set': 'old', 'x-add': 'first', 'x-remove': 'gone' };
      const answer = await ask({ path: '/api/items?q=1', headers });
      const received = receivedIn(answer);
      assert.equal(received.target, '/v2/items?q=1');
      assert.equal(received.headers.host, 'inner.example');
      assert.equal(received.headers['x-set'], 'new');
      assert.equal(received.headers['x-add'], 'first, more');
      assert.equal(received.headers['x-remove'], undefined);
      assert.deepEqual([answer.headers['x-answer'], answer.headers['x-from']], ['set', undefined]);
      const plain = await ask({ path: '/other', headers });
      assert.equal(receivedIn(plain).headers.host, 'shop.example');
      assert.equal(receivedIn(plain).headers['x-set'], 'old');
      assert.deepEqual([plain.headers['x-answer'], plain.headers['x-from']], [undefined, 'web']);
    });

    test('redirects, and keeps the connection for requests without a body', async (context) => {
      const redirect = { kind: 'redirect', scheme: null, host: null, port: null, path: null, status: 302 } as const;
      const on = (path: string, filter: Partial<typeof redirect> & object, to = 'empty'): HttpRouteEntry =>
        routeEntry(
          path,
          { [to]: 1 },
          { matches: [matchOf(path)], filters: [{ ...redirect, ...filter } as HttpFilter] },
        );
      const { ask, fleet, log } = await serve(
        context,
        [
          on('/secure', { scheme: 'https', status: 301 } as object),
          on('/port', { scheme: 'https', port: 8443, status: 308 } as object),
          on('/moved', { host: 'new.example', path: { kind: 'prefix', value: '/to' }, status: 307 } as object),
          on('/full', { path: { kind: 'full', value: '/only' }, status: 303 } as object),
          on('/same', {}),
          routeEntry('rest', { web: 1 }),
        ],
        ({ web }) => [{ ...web.service({ endpoints: [], settings: { accessLog: ALL_REQUESTS } }), name: 'empty' }],
      );
      const cases: readonly (readonly [string, number, string])[] = [
        ['/secure/a?b=c', 301, 'https://shop.example/secure/a?b=c'],
        ['/port', 308, 'https://shop.example:8443/port'],
        ['/moved/a/b?c', 307, `http://new.example:${PORT}/to/a/b?c`],
        ['/full/a?b', 303, `http://shop.example:${PORT}/only?b`],
        ['/same/x', 302, `http://shop.example:${PORT}/same/x`],
      ];
      for (const [path, status, location] of cases) {
        const answer = await ask({ path });
        assert.deepEqual([answer.status, answer.headers.location, answer.body], [status, location, ''], path);
        assert.notEqual(answer.headers.connection, 'close', path);
      }
      assert.equal(receivedIn(await ask({ path: '/' })).service, 'web');
      const withBody = await ask({ path: '/same', method: 'POST', body: 'x'.repeat(100) });
      assert.equal(withBody.status, 302);
      assert.equal(receivedIn(await ask({ path: '/' })).service, 'web');
      // The requests count for the Service of the backend.
      await eventually(async () => {
        const { empty, web } = await fleet.usage();
        assert.deepEqual([empty?.requests, web?.requests], [cases.length + 1, 2]);
        assert.deepEqual(
          log().map(({ status, reason, endpoint }) => [status, reason, endpoint]),
          [...cases.map(([, status]) => status), 302].map((status) => [status, 'redirect', null]),
        );
      });
    });

    test('answers with 504 after its own timeout or that of the Service, whichever is shorter', async (context) => {
      const timeouts = { requestMs: 1_000, backendRequestMs: null };
      const { ask } = await serve(
        context,
        [
          routeEntry('own', { patient: 1 }, { hosts: ['own.example'], timeouts }),
          routeEntry(
            'attempt',
            { web: 1 },
            {
              hosts: ['attempt.example'],
              timeouts: { requestMs: 60_000, backendRequestMs: 1_000 },
            },
          ),
          routeEntry(
            'service',
            { hasty: 1 },
            {
              hosts: ['service.example'],
              timeouts: { requestMs: 60_000, backendRequestMs: null },
            },
          ),
        ],
        ({ web }) => [
          { ...web.service({ settings: { requestTimeoutMs: 60_000 } }), name: 'patient' },
          { ...web.service({ settings: { requestTimeoutMs: 1_000 } }), name: 'hasty' },
        ],
      );
      for (const host of ['own.example', 'attempt.example', 'service.example']) {
        const began = performance.now();
        assert.equal((await ask({ host, path: '/never' })).status, 504, host);
        assert.ok(performance.now() - began >= 1_000, host);
        // The limit of a request does not apply to the next one.
        assert.equal((await ask({ host })).status, 200, host);
      }
    });

    test('alone leads to a backend, and gets no request for the host of another Service', async (context) => {
      const { ask } = await serve(
        context,
        [
          routeEntry('r', { web: 1 }, { hosts: ['r.example'] }),
          routeEntry('foreign', { web: 1 }, { hosts: ['own.example'], createdAt: 1 }),
        ],
        ({ web, canary }) => [
          // The Service is a backend with one port and serves hosts of its own with another.
          { ...web.service({ settings: { hosts: ['backend.example'] } }), name: 'both' },
          {
            name: 'own',
            namespace: 'other',
            port: PORT,
            shared: true,
            endpoints: canary.service().endpoints,
            settings: { httpPorts: [PORT], hosts: ['own.example'] },
          },
        ],
      );
      assert.equal(receivedIn(await ask({ host: 'r.example' })).service, 'web');
      assert.equal(receivedIn(await ask({ host: 'own.example' })).service, 'canary');
      assert.equal((await ask({ host: 'backend.example' })).status, 404);
      assert.equal((await ask({ host: 'unknown.example' })).status, 404);
    });

    test('follows changes of its backends between the requests of one connection', async (context) => {
      const fleet = await startFleet({ workerEntry: SEEDED_WORKER });
      await using web = await startBackend('web');
      await using canary = await startBackend('canary');
      context.after(() => fleet[Symbol.asyncDispose]());
      fleet.route(routeEntry('r', { web: 1 }), routeEntry('stays', { web: 1 }, { hosts: ['stays.example'] }));
      const proxy = await startServing(fleet, web.service());
      const ask = startClient(context, fleet);
      assert.equal(receivedIn(await ask()).service, 'web');
      fleet.route(
        routeEntry('r', { canary: 1 }, { matches: [matchOf('/a')] }),
        routeEntry('stays', { web: 1 }, { hosts: ['stays.example'] }),
      );
      await fleet.serve(web.service(), canary.service());
      await waitForTable(fleet, proxy);
      assert.equal(receivedIn(await ask({ path: '/a' })).service, 'canary');
      assert.equal((await ask()).status, 404);
      assert.equal(receivedIn(await ask({ host: 'stays.example' })).service, 'web');
      await fleet.serve(web.service(), canary.service({ endpoints: web.service().endpoints }));
      await waitForTable(fleet, proxy);
      assert.equal(receivedIn(await ask({ path: '/a' })).service, 'web');
      fleet.route(routeEntry('stays', { web: 1 }, { hosts: ['stays.example'] }));
      await fleet.serve(web.service());
      await waitForTable(fleet, proxy);
      assert.equal((await ask({ path: '/a' })).status, 404);
    });
  });
}
