import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { freePort } from '@weir/testkit';
import { probeServer } from '../../src/kubernetes/kube-config.ts';

const neverAborted = new AbortController().signal;

test('reads version and time of an API server', async () => {
  await using server = await startHttpServer((_request, response) => {
    response.setHeader('date', 'Wed, 01 Jul 2026 12:00:00 GMT');
    response.end(JSON.stringify({ major: '1', minor: '36+', gitVersion: 'v1.36.2-gke.1' }));
  });
  assert.deepEqual(await probeServer(configOf(portOf(server)), neverAborted), {
    server: `http://127.0.0.1:${portOf(server)}`,
    version: 'v1.36.2-gke.1',
    date: Date.parse('2026-07-01T12:00:00Z'),
  });
});

test('reads no time without a Date header', async () => {
  await using server = await startHttpServer((_request, response) => {
    response.sendDate = false;
    response.end('{"gitVersion":"v1.36.2"}');
  });
  assert.equal((await probeServer(configOf(portOf(server)), neverAborted)).date, undefined);
});

test('distinguishes other servers, refusals and silence', async () => {
  await using page = await startHttpServer((_request, response) => void response.end('<html>'));
  const noServer = { code: 'REFUSED', message: /^http:\S+ is not a Kubernetes API server/ };
  await assert.rejects(probeServer(configOf(portOf(page)), neverAborted), noServer);
  await using json = await startHttpServer((_request, response) => void response.end('{}'));
  await assert.rejects(probeServer(configOf(portOf(json)), neverAborted), noServer);
  await using locked = await startHttpServer(
    (_request, response) => void response.writeHead(401).end('{"message":"no"}'),
  );
  await assert.rejects(probeServer(configOf(portOf(locked)), neverAborted), {
    code: 'UNAUTHORIZED',
    message: 'GET /version: no',
  });
  await assert.rejects(probeServer(configOf(await freePort()), neverAborted), {
    code: 'AWAY',
    message: /does not answer/,
  });
});

test('rejects with the reason of the signal', async () => {
  const requested = Promise.withResolvers<void>();
  await using server = await startHttpServer(() => requested.resolve());
  const controller = new AbortController();
  const probe = probeServer(configOf(portOf(server)), controller.signal);
  await requested.promise;
  const reason = new Error('enough');
  controller.abort(reason);
  await assert.rejects(probe, reason);
  server.closeAllConnections();
});

async function startHttpServer(listener: RequestListener): Promise<Server> {
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
