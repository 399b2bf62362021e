// Tests the error pages of tenants over real sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { startServing } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';

/** An endpoint at which nothing listens. */
const CLOSED = { address: '127.0.0.1', port: 1 };
const LARGE = `<p>${'\u00fc'.repeat(8_000)}</p>`;
const PAGES = {
  '404.html': '<h1>Nothing here</h1>',
  '5xx.html': LARGE,
  '502.json': '{"sorry":502}',
  'default.json': '{"sorry":true}',
  '4xx.txt': 'no',
};

const shop = (over: Partial<TestService> = {}): TestService => ({
  name: 'web',
  port: PORT,
  endpoints: [CLOSED],
  errorPages: PAGES,
  ...over,
  settings: { httpPorts: [PORT], hosts: ['shop.example'], ...over.settings },
});

async function serving(context: TestContext, ...services: TestService[]): Promise<Fleet> {
  const fleet = await startFleet();
  context.after(() => fleet[Symbol.asyncDispose]());
  await startServing(fleet, ...services);
  return fleet;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Asked {
  readonly host?: string;
  readonly accept?: string;
  readonly method?: string;
}

async function ask(fleet: Fleet, { host = 'shop.example', accept, method = 'GET' }: Asked): Promise<Answer> {
  const headers = { host, ...(accept !== undefined && { accept }) };
  const request = httpRequest({ host: fleet.addressOf(), port: PORT, method, agent: false, headers }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let body = '';
  for await (const part of response) body += part;
  return { status: response.statusCode, headers: response.headers, body };
}

test('answers with the page for the status, its class or all, in the format that the client prefers', async (context) => {
  const fleet = await serving(context, shop());
  const cases: readonly (readonly [asked: Asked, status: number, type: string, body: string | RegExp])[] = [
    [{ accept: 'text/html' }, 502, 'text/html; charset=utf-8', LARGE],
    [{ accept: 'application/json' }, 502, 'application/json', '{"sorry":502}'],
    [{ accept: 'text/plain' }, 502, 'text/plain; charset=utf-8', /^502 Bad Gateway/],
    [{ accept: 'text/html', host: 'other.example' }, 404, 'text/html; charset=utf-8', '<h1>Nothing here</h1>'],
    [{ accept: 'application/json', host: 'other.example' }, 404, 'application/json', '{"sorry":true}'],
    [{ host: 'other.example' }, 404, 'text/plain; charset=utf-8', 'no'],
  ];
  for (const [asked, status, type, body] of cases) {
    const answer = await ask(fleet, asked);
    const shown = JSON.stringify(asked);
    assert.deepEqual([answer.status, answer.headers['content-type']], [status, type], shown);
    if (typeof body === 'string') assert.equal(answer.body, body, shown);
    else assert.match(answer.body, body, shown);
    assert.equal(Number(answer.headers['content-length']), Buffer.byteLength(answer.body), shown);
    assert.equal(answer.headers['cache-control'], 'no-store', shown);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff', shown);
  }
  const head = await ask(fleet, { accept: 'text/html', method: 'HEAD' });
  assert.deepEqual(
    [head.status, Number(head.headers['content-length']), head.body],
    [502, Buffer.byteLength(LARGE), ''],
  );
});

test('sends pages to HTTP/2 clients with small windows', async (context) => {
  const fleet = await serving(context, shop());
  const session = connect(`http://${fleet.addressOf()}:${PORT}`, { settings: { initialWindowSize: 100 } });
  context.after(() => session.destroy());
  await once(session, 'remoteSettings');
  const ask = async (accept: string): Promise<readonly [IncomingHttpHeaders, string]> => {
    const stream = session.request({ ':path': '/', ':authority': 'shop.example', accept });
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    return [headers, Buffer.concat(parts).toString()];
  };
  const [[html, page], [json, text]] = await Promise.all([ask('text/html'), ask('application/json')]);
  assert.deepEqual([html[':status'], page], [502, LARGE]);
  assert.equal(Number(html['content-length']), Buffer.byteLength(LARGE));
  assert.deepEqual([json[':status'], text], [502, '{"sorry":502}']);
});

test('shows pages only for requests to their Service, and follows changes', async (context) => {
  const own = shop({ shared: true });
  const other = shop({
    name: 'game',
    namespace: 'games',
    shared: true,
    errorPages: { 'default.txt': 'game' },
    settings: { hosts: ['game.example'] },
  });
  const fleet = await serving(context, own, other);
  assert.equal((await ask(fleet, { host: 'game.example' })).body, 'game');
  assert.equal((await ask(fleet, { accept: 'application/json' })).body, '{"sorry":502}');
  assert.match((await ask(fleet, { host: 'nobody.example' })).body, /No service answers/);
  await fleet.serve({ ...own, errorPages: { '502.json': '{"sorry":"changed"}' } }, { ...other, endpoints: [] });
  await eventually(async () =>
    assert.equal((await ask(fleet, { accept: 'application/json' })).body, '{"sorry":"changed"}'),
  );
  const refused = await ask(fleet, { host: 'game.example' });
  assert.deepEqual([refused.status, refused.body], [503, 'game']);
  const { errorPages: _pages, ...without } = own;
  await fleet.serve(without, other);
  await eventually(async () =>
    assert.equal(JSON.parse((await ask(fleet, { accept: 'application/json' })).body).reason, 'connect-failed'),
  );
});

test('shows the message of a Suspension in place of the pages', async (context) => {
  const fleet = await serving(context, shop({ errorPages: { 'default.txt': 'own page' } }));
  await fleet.cutOff({ kind: 'tenant', tenant: 'shop' }, 'abuse', 'call us');
  await eventually(async () => {
    const { status, body } = await ask(fleet, {});
    assert.deepEqual([status, body], [403, '403 Forbidden\n\nThis service is suspended: call us\n']);
  });
});
