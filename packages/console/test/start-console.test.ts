import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { silentLogger, systemClock, UsageError } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { freePort } from '@weir/testkit';
import { startConsole, storeSuspensionWriter } from '../src/index.ts';
import { jsonRequest, startTestConsole } from './fixtures/test-console.ts';

test('refuses a foreign Host header (DNS rebinding)', async () => {
  await using console = await startTestConsole();
  const response = await requestWithHost(console.url, 'attacker.example:8686');
  assert.equal(response.status, 403);
  assert.match(response.text, /"code":"ForeignHost"/);
});

test('accepts localhost and loopback addresses with every port, as kubectl port-forward needs', async () => {
  await using console = await startTestConsole();
  for (const host of ['localhost', 'localhost:1234', '127.0.0.1:9', '127.8.8.8', '[::1]:80']) {
    assert.equal((await requestWithHost(console.url, host)).status, 200, host);
  }
});

test('refuses a malformed Host header', async () => {
  await using console = await startTestConsole();
  for (const host of ['127.0.0.1@attacker.example', '127.0.0.1.attacker.example', '192.0.2.1', '[::2]']) {
    assert.equal((await requestWithHost(console.url, host)).status, 403, host);
  }
});

test('refuses a Suspension from a page of another site', async () => {
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

test('refuses the content types of HTML forms', async () => {
  await using console = await startTestConsole();
  const text = JSON.stringify({ target: { type: 'Tenant', tenant: 'shop' }, message: 'x' });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    const response = await console.request('/api/v1/suspensions', {
      method: 'POST',
      body: text,
      headers: { 'content-type': type },
    });
    assert.equal(response.status, 415, type);
  }
});

test('accepts requests of its own page', async () => {
  await using console = await startTestConsole();
  const origin = new URL(console.url).origin;
  assert.equal((await console.request('/api/v1/services', { headers: { origin } })).status, 200);
});

test('refuses to listen on a network address without authentication', async () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'console.example']) {
    await assert.rejects(
      start(host, 0),
      (error) => error instanceof UsageError && /must not listen.*WEIR_CONSOLE_AUTH=kubernetes/.test(error.message),
    );
  }
});

test('reports a port that is in use, with a fix', async () => {
  await using console = await startTestConsole();
  const { port } = new URL(console.url);
  await assert.rejects(start('127.0.0.1', Number(port)), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use`));
    assert.match(error.message, /--console/);
    return true;
  });
});

test('closes open connections and accepts no new ones after close', async () => {
  const console = await startTestConsole();
  const live = await fetch(new URL('/api/v1/live', console.url));
  await console[Symbol.asyncDispose]();
  await live.text();
  await assert.rejects(fetch(console.url));
});

test('listens on the requested port', async () => {
  const port = await freePort();
  const console = await start('127.0.0.1', port);
  assert.equal(console.url, `http://127.0.0.1:${port}/`);
  await console.close();
});

function start(host: string, port: number): ReturnType<typeof startConsole> {
  const store = new MemoryStore();
  const clock = systemClock;
  const suspensionWriter = storeSuspensionWriter({ suspensionStore: store.suspensions, clock });
  return startConsole({
    store,
    fleet: 'x',
    host,
    port,
    suspensionWriter,
    auth: { kind: 'none' },
    clock,
    log: silentLogger(),
  });
}

/** Sends a request with the header `Host: HOST`. Uses `node:http`, because `fetch` does not let the caller set the Host header. */
function requestWithHost(url: string, host: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL('/api/v1/suspensions', url), { headers: { host } }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject);
    sent.end();
  });
}
