import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { silentLogger, systemClock, UsageError } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { freePort } from '@weir/testkit';
import { startConsole, storeSuspensionWriter } from '../src/index.ts';
import { jsonRequest, startTestConsole } from './fixtures/test-console.ts';

test('a name that an attacker points at this machine is not answered (DNS rebinding)', async () => {
  await using console = await startTestConsole();
  const answer = await askWithHost(console.url, 'attacker.example:8686');
  assert.equal(answer.status, 403);
  assert.match(answer.text, /"code":"ForeignHost"/);
});

test('localhost and loopback addresses are answered, whatever the port: kubectl port-forward uses another', async () => {
  await using console = await startTestConsole();
  for (const host of ['localhost', 'localhost:1234', '127.0.0.1:9', '127.8.8.8', '[::1]:80']) {
    assert.equal((await askWithHost(console.url, host)).status, 200, host);
  }
});

test('a Host that is no host is refused', async () => {
  await using console = await startTestConsole();
  for (const host of ['127.0.0.1@attacker.example', '127.0.0.1.attacker.example', '192.0.2.1', '[::2]']) {
    assert.equal((await askWithHost(console.url, host)).status, 403, host);
  }
});

test('a page of another site cannot suspend', async () => {
  await using console = await startTestConsole();
  const body = { target: { type: 'Tenant', tenant: 'shop' }, message: 'x' };
  const foreign = await console.request(
    '/api/v1/suspensions',
    jsonRequest('POST', body, { origin: 'http://attacker.example' }),
  );
  assert.equal(foreign.status, 403);
  assert.equal(foreign.json.error.code, 'ForeignOrigin');
  assert.deepEqual((await console.request('/api/v1/suspensions')).json.items, []);
});

test('a form of another site cannot suspend either: only JSON is read', async () => {
  await using console = await startTestConsole();
  const text = JSON.stringify({ target: { type: 'Tenant', tenant: 'shop' }, message: 'x' });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    const answer = await console.request('/api/v1/suspensions', {
      method: 'POST',
      body: text,
      headers: { 'content-type': type },
    });
    assert.equal(answer.status, 415, type);
  }
});

test("the console's own page may use it", async () => {
  await using console = await startTestConsole();
  const origin = new URL(console.url).origin;
  assert.equal((await console.request('/api/v1/services', { headers: { origin } })).status, 200);
});

test('an address that others can reach is refused while nobody is asked for a token', async () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'console.example']) {
    await assert.rejects(
      start(host, 0),
      (error) =>
        error instanceof UsageError && /may therefore not listen.*WEIR_CONSOLE_AUTH=kubernetes/.test(error.message),
    );
  }
});

test('a port that is taken is said with what to do, and nothing stays behind', async () => {
  await using console = await startTestConsole();
  const { port } = new URL(console.url);
  await assert.rejects(start('127.0.0.1', Number(port)), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use`));
    assert.match(error.message, /--console/);
    return true;
  });
});

test('after close nobody answers, not even on connections that were open', async () => {
  const console = await startTestConsole();
  const live = await fetch(new URL('/api/v1/live', console.url));
  await console[Symbol.asyncDispose]();
  await live.text();
  await assert.rejects(fetch(console.url));
});

test('a free port is really used', async () => {
  const port = await freePort();
  const console = await start('127.0.0.1', port);
  assert.equal(console.url, `http://127.0.0.1:${port}/`);
  await console.close();
});

function start(host: string, port: number): ReturnType<typeof startConsole> {
  const store = new MemoryStore();
  const clock = systemClock;
  const suspensions = storeSuspensionWriter({ cutoffs: store.suspensions, clock });
  return startConsole({
    store,
    fleet: 'x',
    host,
    port,
    suspensions,
    auth: { kind: 'none' },
    clock,
    log: silentLogger(),
  });
}

/** `fetch` does not let the Host header be chosen. */
function askWithHost(url: string, host: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asking = request(new URL('/api/v1/suspensions', url), { headers: { host } }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asking.on('error', reject);
    asking.end();
  });
}
