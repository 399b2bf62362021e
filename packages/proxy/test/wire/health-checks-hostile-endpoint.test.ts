// Tests endpoints whose answers to health checks try to keep the proxy's main thread busy.
import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import type { HealthCheckSettings } from '@weir/model';
import { eventually, makeCertificate } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { httpEndpoint } from '../fixtures/http-endpoint.ts';
import { startServing, webService } from '../fixtures/services.ts';

const CERTIFICATE = makeCertificate({ name: 'nobody.example', names: ['nobody.example'] });
/** A timeout that is long enough for the byte limit to end every check first. */
const LONG_TIMEOUT_MS = 60_000;

const HTTP: HealthCheckSettings = {
  kind: 'http',
  path: '/',
  intervalMs: 60,
  timeoutMs: LONG_TIMEOUT_MS,
  healthyThreshold: 1,
  unhealthyThreshold: 1,
};
const HTTPS: HealthCheckSettings = { ...HTTP, overTls: true };

/** Returns the reason why the health check of `server` fails. */
async function failureAt(server: Server, healthCheck: HealthCheckSettings): Promise<string> {
  await using fleet = await startFleet();
  await using good = await httpEndpoint(
    'good',
    healthCheck.kind === 'http' && healthCheck.overTls ? CERTIFICATE : undefined,
  );
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => open.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  try {
    const { port } = server.address() as { readonly port: number };
    const at = { address: '127.0.0.1', port };
    const proxy = await startServing(fleet, webService([at, good.endpoint], { settings: { healthCheck } }));
    return await eventually(() => {
      const found = proxy.view().unhealthy?.endpoints.find(({ endpoint }) => endpoint.port === port);
      assert.ok(found);
      return found.why;
    });
  } finally {
    for (const socket of open) socket.destroy();
    server.close();
  }
}

function tlsServer(options: TlsOptions, answer: (socket: Socket) => void): Server {
  const server = createTlsServer({ cert: CERTIFICATE.chain, key: CERTIFICATE.key, ...options }, (socket) => {
    socket.on('error', () => undefined).once('data', () => answer(socket));
  });
  return server.on('tlsClientError', () => undefined);
}

/** Writes until the peer stops reading. */
function repeat(socket: Socket, text: string): void {
  const many = Buffer.from(text.repeat(1_000));
  const go = () => {
    while (!socket.destroyed && socket.write(many));
  };
  socket.on('drain', go);
  go();
}

const ENDLESS = {
  'interim answers': 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n',
  'blank lines': '\r\n',
};

for (const [what, text] of Object.entries(ENDLESS)) {
  test(`${what} without end fail the check`, async () => {
    const why = 'an answer of more than 196608 bytes';
    const plain = createServer((socket) => socket.once('data', () => repeat(socket, text)));
    assert.equal(await failureAt(plain, HTTP), `its http check fails: ${why}`);
    const overTls = tlsServer({}, (socket) => repeat(socket, text));
    assert.equal(await failureAt(overTls, HTTPS), `its https check fails: ${why}`);
  });
}

test('reads a chunk header without end only up to the limit, and uses the status', async () => {
  const status = 'HTTP/1.1 503 Unavailable\r\ntransfer-encoding: chunked\r\n\r\n1;';
  const server = createServer((socket) =>
    socket.once('data', () => {
      socket.write(status);
      repeat(socket, 'a');
    }),
  );
  assert.equal(await failureAt(server, HTTP), 'its http check fails: status 503');
});

test('lets an endpoint neither choose a Diffie-Hellman group nor renegotiate', async () => {
  const options: TlsOptions = { maxVersion: 'TLSv1.2' };
  const answer = (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n');
  const ciphers = 'DHE-RSA-AES128-GCM-SHA256';
  const ofOwnGroup = tlsServer({ ...options, ciphers, dhparam: 'auto' }, answer);
  assert.match(await failureAt(ofOwnGroup, HTTPS), /^its https check fails: ERR_SSL_/);
  const server = createTlsServer({ cert: CERTIFICATE.chain, key: CERTIFICATE.key, ...options }, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.renegotiate({}, (error) => error === null && answer(socket)));
  });
  assert.equal(await failureAt(server, { ...HTTPS, timeoutMs: 300 }), 'its https check fails: no answer within 300 ms');
});
