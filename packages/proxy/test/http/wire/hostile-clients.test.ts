// Tests clients that break rules of HTTP on purpose: the proxy must count and answer them as any other client.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { connect, constants } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { connectClient, eventually } from '@weir/testkit';
import { CLIENT_PREFACE, ERROR, FLAG, FRAME } from '../../../src/http/h2/protocol.ts';
import type { RunningProxy } from '../../../src/index.ts';
import { FLEET_SECRET, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { outcomesFor } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { frameOf, numberBytes } from '../h2/raw-peer.ts';

const NO_LIMITS = { connections: null, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null };

async function endpoint(context: TestContext, listener: RequestListener): Promise<{ address: string; port: number }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

async function serve(context: TestContext, service: TestService): Promise<{ fleet: Fleet; proxy: RunningProxy }> {
  const fleet = await startFleet();
  context.after(() => fleet[Symbol.asyncDispose]());
  await fleet.serve(service);
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  return { fleet, proxy };
}

const web = (at: { address: string; port: number }, over: Partial<TestService> = {}): TestService => ({
  name: 'web',
  port: PORT,
  endpoints: [at],
  ...over,
  settings: { httpPorts: [PORT], ...over.settings },
});

test('refuses the preface of HTTP/2 on a TLS connection that agreed on HTTP/1.1', async (context) => {
  const at = await endpoint(context, (_request, response) => response.end('web'));
  const { fleet, proxy } = await serve(context, web(at, terminatingTls({ alpn: ['http/1.1'] })));
  const client = connectTls({ ...TRUSTING_CLIENT, host: fleet.addressOf(), port: PORT, ALPNProtocols: ['http/1.1'] });
  client.on('error', () => undefined);
  client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  let answer = '';
  client.on('data', (bytes) => {
    answer += String(bytes);
  });
  await once(client, 'close');
  assert.match(answer, /^HTTP\/1\.1 400 /);
  await eventually(async () => {
    const { requests, connections } = (await fleet.usage()).web ?? {};
    assert.deepEqual({ requests, connections }, { requests: 1, connections: 0 });
  });
  assert.equal(outcomesFor(proxy)?.internal ?? 0, 0);
});

test('resets a stream whose client takes no byte of the answer of the proxy', async (context) => {
  const at = await endpoint(context, (_request, response) => response.end('web'));
  const settings = { httpPorts: [PORT], maxBodyBytes: 1, idleTimeoutMs: 1_000 };
  const { fleet, proxy } = await serve(context, web(at, { settings }));
  const session = connect(`http://${fleet.addressOf()}:${PORT}`, { settings: { initialWindowSize: 0 } });
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  await once(session, 'remoteSettings');
  const stream = session.request({ ':method': 'POST', 'content-length': '2' }, { endStream: false });
  stream.on('error', () => undefined);
  const [headers] = await once(stream, 'response');
  assert.equal(headers[':status'], 413);
  await new Promise((resolve) => stream.once('close', resolve));
  assert.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
  assert.equal(session.closed, false);
  session.destroy();
  await eventually(async () => assert.equal((await fleet.usage()).web?.requests, 1));
  assert.equal(outcomesFor(proxy)?.internal ?? 0, 0);
});

test('sends nothing to endpoints for requests that their client resets at once', async (context) => {
  const paths: (string | undefined)[] = [];
  const at = await endpoint(context, (request, response) => {
    paths.push(request.url);
    response.end('web');
  });
  const { fleet, proxy } = await serve(context, web(at));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  // `:method: GET`, `:scheme: http`, `:path: /…` and `:authority: a` (RFC 7541 §6).
  const request = (id: number, path: string): Uint8Array =>
    frameOf(
      FRAME.headers,
      FLAG.endHeaders | FLAG.endStream,
      id,
      Buffer.from(`\x82\x86\x04\x02${path}\x01\x01a`, 'latin1'),
    );
  const resets = Array.from({ length: 100 }, (_, index) => {
    const id = 2 * index + 1;
    return [request(id, '/r'), frameOf(FRAME.rstStream, 0, id, numberBytes(ERROR.cancel))];
  });
  const settings = frameOf(FRAME.settings, 0, 0, new Uint8Array());
  await client.send(Buffer.concat([CLIENT_PREFACE, settings, ...resets.flat(), request(201, '/a')]));
  await client.take(/web/);
  assert.deepEqual(paths, ['/a']);
  await eventually(async () => assert.equal((await fleet.usage()).web?.requests, 101));
  assert.equal(outcomesFor(proxy)?.internal ?? 0, 0);
});

test('drops trailer fields that endpoints could take for fields of the head', async (context) => {
  const at = await endpoint(context, (request, response) => {
    request.resume().on('end', () => response.end(`trailers: ${request.rawTrailers.join()}`));
  });
  const { fleet } = await serve(context, web(at));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  const trailers =
    'X-Forwarded-For: 10.0.0.1\r\nX_Forwarded_Proto: https\r\nContent-Length: 9\r\nHost: b\r\nX-Sum: 42\r\n';
  await client.send(
    `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${trailers}\r\n`,
  );
  await client.ended;
  const answer = client.buffered.toString('latin1');
  assert.match(answer, /\btrailers: X-Sum,42\b/);
});

test('admits a client of HTTP/2 once, also if the Service allows one connection', async (context) => {
  const at = await endpoint(context, (_request, response) => response.end('web'));
  const { fleet } = await serve(context, web(at, { settings: { limits: { ...NO_LIMITS, connectionsPerClient: 1 } } }));
  const session = connect(`http://${fleet.addressOf()}:${PORT}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  const [headers] = await once(session.request({ ':path': '/' }).resume(), 'response');
  assert.equal(headers[':status'], 200);
  session.destroy();
  await eventually(async () => assert.equal((await fleet.usage()).web?.connections, 1));
});
