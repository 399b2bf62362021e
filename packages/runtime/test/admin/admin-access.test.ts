import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  ADMIN_TOKEN_FORMAT,
  createAdminServer,
  createLogger,
  formatHostPort,
  Health,
  optional,
  parseConfig,
  Secret,
  setting,
} from '../../src/index.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';

const TOKEN = 'a-token-of-24-characters';

async function start(t: TestContext): Promise<{ url: string; health: Health }> {
  const health = new Health();
  const server = createAdminServer({
    host: '127.0.0.1',
    port: 0,
    health,
    metrics: createMetrics(),
    routes: { '/debug': () => 'tenant shop' },
    token: new Secret(TOKEN),
  });
  await server.start(new AbortController().signal);
  t.after(() => server.close());
  return { url: `http://${formatHostPort(server.address())}`, health };
}

function ask(url: string, authorization?: string): Promise<Response> {
  return fetch(url, { headers: { connection: 'close', ...(authorization === undefined ? {} : { authorization }) } });
}

test('requires the token for every path except the probes', async (t) => {
  const { url } = await start(t);
  for (const path of ['/metrics', '/debug', '/nothing']) {
    const wrong = [
      'Bearer',
      `Basic ${TOKEN}`,
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
      `Bearer ${TOKEN} x`,
      TOKEN,
    ];
    for (const authorization of [undefined, ...wrong]) {
      const refused = await ask(url + path, authorization);
      assert.equal(refused.status, 401, `${path} ${authorization}`);
      assert.equal(refused.headers.get('www-authenticate'), 'Bearer realm="weir"');
      assert.doesNotMatch(await refused.text(), /shop|\/debug/);
    }
    const { status } = await ask(url + path, `bearer ${TOKEN}`);
    assert.equal(status, path === '/nothing' ? 404 : 200);
  }
});

test('gives the reasons of a failed probe only with the token', async (t) => {
  const { url, health } = await start(t);
  assert.equal((await ask(`${url}/readyz`)).status, 200);
  health.add('proxy', 'ready', () => 'the keys of tenant shop');
  const untrusted = await ask(`${url}/readyz`);
  assert.equal(untrusted.status, 503);
  assert.deepEqual(await untrusted.json(), { ready: false, reasons: [{ check: 'proxy', affects: 'ready' }] });
  assert.match(await (await ask(`${url}/readyz`, `Bearer ${TOKEN}`)).text(), /the keys of tenant shop/);
  assert.equal((await ask(`${url}/healthz`)).status, 200);
});

test('refuses a short or malformed token without printing the token', () => {
  const spec = { token: optional(setting('WEIR_ADMIN_TOKEN', ADMIN_TOKEN_FORMAT)) };
  const tokenOf = (text: string): string | undefined => parseConfig(spec, { WEIR_ADMIN_TOKEN: text }).token?.reveal();
  assert.equal(tokenOf(`${TOKEN}\n`), TOKEN);
  assert.equal(tokenOf(''), undefined);
  for (const wrong of ['short', 'two words, and long', 'ümlaut-ümlaut-ümlaut', '=very-long-but-odd='])
    assert.throws(() => tokenOf(wrong), {
      message: /^WEIR_ADMIN_TOKEN is \[redacted\]; use at least 16 characters: letters, /,
    });
});

test('warns once if the admin server is exposed to the network', async () => {
  const warned = async (host: string, options: { token?: Secret; tls?: string } = {}): Promise<string[]> => {
    const lines: string[] = [];
    const log = createLogger({ name: 'test', level: 'warn', destination: { write: (line) => void lines.push(line) } });
    const server = createAdminServer({
      host,
      port: 0,
      health: new Health(),
      metrics: createMetrics(),
      log,
      ...options,
    });
    for (let round = 0; round < 2; round += 1) {
      await server.start(new AbortController().signal);
      await server.close();
    }
    return lines.map((line) => (JSON.parse(line) as { advice: string }).advice);
  };
  const token = new Secret(TOKEN);
  assert.deepEqual(await warned('127.0.0.1'), []);
  assert.deepEqual(await warned('localhost'), []);
  assert.deepEqual(await warned('0.0.0.0'), ['set WEIR_ADMIN_TOKEN and WEIR_ADMIN_TLS, or listen on loopback']);
  assert.deepEqual(await warned('0.0.0.0', { token }), ['set WEIR_ADMIN_TLS']);
});
