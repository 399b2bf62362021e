// Tests gRPC health checks of real servers: Node's HTTP/2, and servers that break the protocol.
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import type { Endpoint } from '@weir/model';
import { makeCertificate } from '@weir/testkit';
import fc from 'fast-check';
import { failed, type HealthCheckResult, PASSED, type WantedCheck } from '../../../src/upstream/health/check.ts';
import { checkGrpc } from '../../../src/upstream/health/grpc-check.ts';
import { healthRequest, healthResultOf } from '../../../src/upstream/health/grpc-health.ts';
import { answerGrpc, framed, grpcHealthEndpoint, http2Endpoint } from '../../fixtures/grpc-health-endpoint.ts';

const CERTIFICATE = makeCertificate({ name: 'grpc.example', names: ['grpc.example'] });
const SERVING = framed([0x08, 1]);

function wanted(endpoint: Endpoint, over: Partial<WantedCheck> = {}): WantedCheck {
  const check = { kind: 'tcp', intervalMs: 1_000, timeoutMs: 900, healthyThreshold: 1, unhealthyThreshold: 1 } as const;
  return { key: '', endpoint, check, proxyProtocol: null, overTls: false, host: null, ...over };
}

function resultOf(check: WantedCheck, service = ''): Promise<HealthCheckResult> {
  return checkGrpc(check, service, new AbortController().signal);
}

/** Returns the result of a check of Node's HTTP/2 with this answer. */
async function resultFor(answer: (stream: ServerHttp2Stream) => void): Promise<HealthCheckResult> {
  await using server = await http2Endpoint(answer);
  return await resultOf(wanted(server.endpoint));
}

/** Returns the result of a check of any server. */
async function resultAt(server: Server, over: Partial<WantedCheck> = {}): Promise<HealthCheckResult> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => open.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  try {
    const { port } = server.address() as AddressInfo;
    return await resultOf(wanted({ address: '127.0.0.1', port }, over));
  } finally {
    for (const socket of open) socket.destroy();
    server.close();
  }
}

test('passes if the endpoint serves, and sends a gRPC request', async () => {
  await using server = await grpcHealthEndpoint();
  const { endpoint } = server;
  assert.deepEqual(await resultOf(wanted(endpoint)), PASSED);
  assert.deepEqual(await resultOf(wanted(endpoint), 'shop.v1.Orders'), PASSED);
  const common = {
    path: '/grpc.health.v1.Health/Check',
    authority: `127.0.0.1:${endpoint.port}`,
    contentType: 'application/grpc',
    te: 'trailers',
  };
  assert.deepEqual(server.requests, [
    { ...common, content: '0000000000' },
    { ...common, content: `0000000010${'0a0e'}${Buffer.from('shop.v1.Orders').toString('hex')}` },
  ]);
});

test('fails with the status of an endpoint that does not serve', async () => {
  await using server = await grpcHealthEndpoint();
  for (const status of ['NOT_SERVING', 'UNKNOWN', 'SERVICE_UNKNOWN'] as const) {
    server.status = status;
    assert.deepEqual(await resultOf(wanted(server.endpoint)), failed(status));
  }
});

test('passes over TLS with the server name, and with ALPN only', async () => {
  await using server = await grpcHealthEndpoint(CERTIFICATE);
  const overTls = { overTls: true, host: 'grpc.example' };
  assert.deepEqual(await resultOf(wanted(server.endpoint, overTls)), PASSED);
  assert.equal(server.requests[0]?.authority, `grpc.example:${server.endpoint.port}`);
  const withoutAlpn = createTlsServer({ cert: CERTIFICATE.chain, key: CERTIFICATE.key });
  assert.deepEqual(await resultAt(withoutAlpn, overTls), failed('no HTTP/2: ALPN did not choose h2'));
});

const trailersOnly = (grpcStatus: string) => (stream: ServerHttp2Stream) =>
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': grpcStatus },
    { endStream: true },
  );

const ANSWERS: readonly (readonly [name: string, answer: (stream: ServerHttp2Stream) => void, why: string])[] = [
  [
    'has no health service',
    trailersOnly('12'),
    'grpc-status 12 (UNIMPLEMENTED): the endpoint does not implement grpc.health.v1.Health',
  ],
  [
    'does not know the service',
    trailersOnly('5'),
    'grpc-status 5 (NOT_FOUND): the endpoint does not know the health of this service',
  ],
  [
    'answers UNAVAILABLE behind a message',
    (stream) => answerGrpc(stream, SERVING, '14'),
    'grpc-status 14 (UNAVAILABLE)',
  ],
  ['answers with an unknown code', trailersOnly('99'), 'an unknown grpc-status'],
  ['answers with a status that is no number', trailersOnly('0x0'), 'an unknown grpc-status'],
  ['answers OK without a message', trailersOnly('0'), 'not a valid HealthCheckResponse'],
  [
    'sends no grpc-status',
    (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' });
      stream.end(SERVING);
    },
    'an answer without grpc-status',
  ],
  ['answers with status 503', (stream) => stream.respond({ ':status': 503 }, { endStream: true }), 'status 503'],
  [
    'answers with HTML',
    (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'text/html', 'grpc-status': '0' });
      stream.end(SERVING);
    },
    'an answer that is not gRPC',
  ],
  ['sends a broken message', (stream) => answerGrpc(stream, framed([0x08])), 'not a valid HealthCheckResponse'],
  [
    'sends two messages',
    (stream) => answerGrpc(stream, Buffer.concat([SERVING, SERVING])),
    'not a valid HealthCheckResponse',
  ],
  [
    'sends a compressed message',
    (stream) => answerGrpc(stream, Buffer.from([1, 0, 0, 0, 2, 0x08, 1])),
    'not a valid HealthCheckResponse',
  ],
  [
    'sends a huge message',
    (stream) => answerGrpc(stream, Buffer.alloc(1_048_576)),
    'an answer of more than 1024 bytes',
  ],
  ['resets the stream', (stream) => stream.close(8), 'HTTP/2 error CANCEL'],
];

for (const [name, answer, why] of ANSWERS) {
  test(`fails at an endpoint that ${name}`, async () => {
    assert.deepEqual(await resultFor(answer), failed(why));
  });
}

/** An empty SETTINGS. */
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
/** A SETTINGS frame with an unknown setting. */
const UNKNOWN_SETTING = Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0]);

test('fails at an endpoint that speaks only HTTP/1.1', async () => {
  assert.deepEqual(await resultAt(createHttpServer()), failed('an answer of HTTP/1 instead of HTTP/2'));
});

test('fails at an endpoint that sends garbage, closes, resets or never stops to send', async () => {
  const garbage = createServer((socket) => socket.write('\u0000\u0000\u0000\u00ff garbage '.repeat(10)));
  assert.deepEqual(await resultAt(garbage), failed('HTTP/2 error PROTOCOL'));
  const closing = createServer((socket) => socket.once('data', () => socket.end()));
  assert.deepEqual(await resultAt(closing), failed('the endpoint closed the connection without an answer'));
  const resetting = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
  assert.deepEqual(await resultAt(resetting), failed('ECONNRESET'));
  const endless = createServer((socket) => {
    socket.write(SETTINGS);
    const frames = Buffer.concat(Array.from({ length: 500 }, () => UNKNOWN_SETTING));
    const repeat = (error?: Error | null): void => {
      if (!error) socket.write(frames, repeat);
    };
    repeat();
  });
  const { kind, ...rest } = await resultAt(endless);
  assert.equal(kind, 'bad');
  assert.match(JSON.stringify(rest), /more than 196608 bytes|ENHANCE_YOUR_CALM/);
});

test('closes the connection when the check is aborted while the endpoint hangs', async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<ServerHttp2Stream>();
  await using server = await http2Endpoint(open);
  const stop = new AbortController();
  const result = checkGrpc(wanted(server.endpoint), '', stop.signal);
  const stream = await opened;
  const closed = new Promise<void>((resolve) => void stream.on('close', resolve));
  stop.abort();
  assert.deepEqual(await result, failed('the endpoint closed the connection without an answer'));
  await closed;
});

test('reads every valid response, and never throws', () => {
  const unknownFields = fc.array(
    fc.oneof(
      fc.tuple(fc.constant([0x10]), fc.constant([0x96, 0x01])),
      fc.tuple(fc.constant([0x1a, 3]), fc.constant([1, 2, 3])),
      fc.tuple(fc.constant([0x25]), fc.constant([1, 2, 3, 4])),
      fc.tuple(fc.constant([0x31]), fc.constant([1, 2, 3, 4, 5, 6, 7, 8])),
      // The last value of a repeated field counts.
      fc.tuple(fc.constant([0x08]), fc.constant([2])),
    ),
  );
  fc.assert(
    fc.property(unknownFields, (fields) => {
      const message = [...fields.flat(2), 0x08, 0x81, 0x00];
      assert.deepEqual(healthResultOf('0', framed(message)), PASSED);
    }),
  );
  fc.assert(
    fc.property(fc.option(fc.string(), { nil: undefined }), fc.uint8Array({ maxLength: 40 }), (grpcStatus, message) => {
      const { kind } = healthResultOf(grpcStatus, framed([...message]));
      if (kind === 'good') assert.equal(grpcStatus, '0');
      assert.equal(healthResultOf('0', message.subarray(0, 4)).kind, 'bad');
    }),
  );
});

test('encodes names of services of any length', () => {
  for (const length of [1, 127, 128, 1_023]) {
    const request = Buffer.from(healthRequest('s'.repeat(length)));
    const lengthBytes = length < 128 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
    assert.deepEqual(request, framed([0x0a, ...lengthBytes, ...Buffer.from('s'.repeat(length))]));
  }
});
