// Tests whom the proxy believes about the client of a request: only HTTP proxies that the operator has named.
import assert from 'node:assert/strict';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { ServiceSettings } from '@weir/model';
import { connectClient, eventually } from '@weir/testkit';
import type { ProxyOptions } from '../../../src/index.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { ALL_REQUESTS, type LoggedRequests, serveLogged } from '../../fixtures/logged-requests.ts';

const TRUSTED = '127.0.0.2';
const UNTRUSTED = '127.0.0.3';

/** Serves the Service "web", whose endpoint answers with the fields about the client that it has received. */
function serveBehindProxies(
  accessLog?: ServiceSettings['accessLog'],
  options: Pick<ProxyOptions, 'writeForwarded'> = {},
): Promise<LoggedRequests> {
  return serveLogged(
    accessLog,
    (request, response) => {
      const { headers } = request;
      const names = Object.keys(headers).filter((name) => /^(x-)?forwarded/.test(name));
      response.end(JSON.stringify(Object.fromEntries(names.sort().map((name) => [name, headers[name]]))));
    },
    { trustForwarded: [`${TRUSTED}/32`], ...options },
  );
}

/** What a proxy in front of Weir sends, and what a client could forge. */
const CLAIMS = {
  'x-forwarded-for': '10.9.9.9, 203.0.113.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'bank.example',
  'x-forwarded-port': '444',
  forwarded: 'for=203.0.113.7',
};
const CLAIM_LINES = Object.entries(CLAIMS)
  .map((pair) => `${pair.join(': ')}\r\n`)
  .join('');

/** Sends a request with the claims from a local address, and returns the fields that the endpoint has received. */
async function claim({ host }: LoggedRequests, localAddress: string): Promise<Record<string, string>> {
  await using client = await connectClient({ host, port: PORT, localAddress });
  await client.send(`GET / HTTP/1.1\r\nHost: shop.example\r\n${CLAIM_LINES}Connection: close\r\n\r\n`);
  await client.ended;
  const [, body = ''] = client.buffered.toString('latin1').split('\r\n\r\n');
  return JSON.parse(/\{.*\}/.exec(body)?.[0] ?? '{}');
}

async function claimOverHttp2({ host }: LoggedRequests, localAddress: string): Promise<Record<string, string>> {
  const session = connectHttp2(`http://${host}:${PORT}`, {
    createConnection: () => connect({ host, port: PORT, localAddress }),
  });
  try {
    const stream = session.request({ ':authority': 'shop.example', ...CLAIMS });
    return JSON.parse(Buffer.concat(await stream.toArray()).toString('utf8'));
  } finally {
    session.close();
  }
}

const BELIEVED = { ...CLAIMS, 'x-forwarded-for': `10.9.9.9, 203.0.113.7, ${TRUSTED}` };
const REPLACED = {
  'x-forwarded-for': UNTRUSTED,
  'x-forwarded-proto': 'http',
  'x-forwarded-host': 'shop.example',
  'x-forwarded-port': String(PORT),
};

test('believes the fields about the client only on connections from trusted networks', async () => {
  await using serving = await serveBehindProxies();
  for (const ask of [claim, claimOverHttp2]) {
    assert.deepEqual(await ask(serving, TRUSTED), BELIEVED);
    assert.deepEqual(await ask(serving, UNTRUSTED), REPLACED);
  }
});

test('sends Forwarded if the operator wants this field', async () => {
  await using serving = await serveBehindProxies(undefined, { writeForwarded: true });
  const element = (client: string): string => `for=${client};proto=http;host="shop.example"`;
  for (const ask of [claim, claimOverHttp2]) {
    assert.equal((await ask(serving, TRUSTED)).forwarded, `${CLAIMS.forwarded}, ${element(TRUSTED)}`);
    assert.equal((await ask(serving, UNTRUSTED)).forwarded, element(UNTRUSTED));
  }
});

test('logs the client for whom a trusted proxy asks', async () => {
  await using serving = await serveBehindProxies(ALL_REQUESTS);
  for (const ask of [claim, claimOverHttp2]) for (const from of [TRUSTED, UNTRUSTED]) await ask(serving, from);
  const lines = await serving.lines(4);
  assert.deepEqual(
    lines.map(({ client }) => client),
    ['203.0.113.7', UNTRUSTED, '203.0.113.7', UNTRUSTED],
  );
});

test('applies source ranges to the address of the connection', async () => {
  await using serving = await serveBehindProxies();
  await serving.configure({ sourceRanges: [`${TRUSTED}/32`] });
  await eventually(async () => assert.deepEqual(await claim(serving, TRUSTED), BELIEVED));
  await serving.configure({ sourceRanges: ['203.0.113.0/24'] });
  await eventually(async () => assert.deepEqual(await claim(serving, TRUSTED), {}));
});
