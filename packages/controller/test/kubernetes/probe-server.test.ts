import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { freePort } from '@weir/testkit';
import { probeServer } from '../../src/kubernetes/kube-config.ts';

const patient = new AbortController().signal;

test('version and time of an API server, as it says them', async () => {
  await using server = await answering((_request, response) => {
    response.setHeader('date', 'Wed, 01 Jul 2026 12:00:00 GMT');
    response.end(JSON.stringify({ major: '1', minor: '36+', gitVersion: 'v1.36.2-gke.1' }));
  });
  assert.deepEqual(await probeServer(configOf(portOf(server)), patient), {
    server: `http://127.0.0.1:${portOf(server)}`,
    version: 'v1.36.2-gke.1',
    date: Date.parse('2026-07-01T12:00:00Z'),
  });
});

test('one that does not say its time has none', async () => {
  await using server = await answering((_request, response) => {
    response.sendDate = false;
    response.end('{"gitVersion":"v1.36.2"}');
  });
  assert.equal((await probeServer(configOf(portOf(server)), patient)).date, undefined);
});

test('something else at the address, a refusal and silence are told apart', async () => {
  await using page = await answering((_request, response) => void response.end('<html>'));
  const noServer = { code: 'REFUSED', message: /^http:\S+ is not a Kubernetes API server/ };
  await assert.rejects(probeServer(configOf(portOf(page)), patient), noServer);
  await using json = await answering((_request, response) => void response.end('{}'));
  await assert.rejects(probeServer(configOf(portOf(json)), patient), noServer);
  await using locked = await answering((_request, response) => void response.writeHead(401).end('{"message":"no"}'));
  await assert.rejects(probeServer(configOf(portOf(locked)), patient), {
    code: 'UNAUTHORIZED',
    message: 'GET /version: no',
  });
  await assert.rejects(probeServer(configOf(await freePort()), patient), { code: 'AWAY', message: /does not answer/ });
});

test('whoever no longer wants the answer gets the own reason', async () => {
  const asked = Promise.withResolvers<void>();
  await using server = await answering(() => asked.resolve());
  const wish = new AbortController();
  const probe = probeServer(configOf(portOf(server)), wish.signal);
  await asked.promise;
  const reason = new Error('enough');
  wish.abort(reason);
  await assert.rejects(probe, reason);
  server.closeAllConnections();
});

async function answering(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function configOf(port: number): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true }],
    users: [{ name: 'u' }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  return config;
}
