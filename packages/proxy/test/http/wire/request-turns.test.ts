// Tests the order in which a worker begins requests of two tenants that arrive at the same moment.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Change } from '@weir/model';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { CLIENT_PREFACE, FLAG, FRAME } from '../../../src/http/h2/protocol.ts';
import { MAX_REQUESTS_PER_TURN } from '../../../src/http/request-turns.ts';
import type { LimiterRows } from '../../../src/limits/admission.ts';
import { LimiterRegistry } from '../../../src/limits/limiter-registry.ts';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { answeringEndpoint } from '../../fixtures/answering-endpoint.ts';
import { TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type TestService, tableFor, uidOf } from '../../fixtures/tables.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';
import { frameOf } from '../h2/raw-peer.ts';

const CALM_PORT = PORT + 1;
const REQUESTS = 40;
/** Longer than the first frames of HTTP/2, and shorter than these and an answer, or an answer of HTTP/1.1. */
const MIN_ANSWER_BYTES = 50;
const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};
/** The endpoint connection ends with each request, so that each request opens another connection. */
const LAST_ANSWER = 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n';

const GET = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
/** `:method: GET`, `:scheme: http`, `:path: /` and `:authority: a` (RFC 7541 §6). */
const GET_BLOCK = Buffer.from('\x82\x86\x84\x01\x01a', 'latin1');
const PREFACE = Buffer.concat([CLIENT_PREFACE, frameOf(FRAME.settings, 0, 0, Buffer.alloc(0))]);

/** Returns the frames of requests on the streams from `first` on. */
function http2Requests(first: number, count: number): Buffer {
  const flags = FLAG.endHeaders | FLAG.endStream;
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => frameOf(FRAME.headers, flags, first + 2 * index, GET_BLOCK)),
  );
}

interface Version {
  readonly name: string;
  readonly over?: Partial<TestService>;
  /** How many connections the tenant with many requests has. */
  readonly connections: number;
  /** What a connection sends first, with one request that is answered. */
  readonly first: Buffer;
  /** `count` further requests. */
  requests(count: number): Buffer;
}

const HTTP1 = { connections: REQUESTS, first: GET, requests: () => GET };
const VERSIONS: readonly Version[] = [
  { ...HTTP1, name: 'HTTP/1.1' },
  { ...HTTP1, name: 'HTTP/1.1 over TLS', over: terminatingTls() },
  {
    name: 'HTTP/2',
    connections: 4,
    first: Buffer.concat([PREFACE, http2Requests(1, 1)]),
    requests: (count) => http2Requests(3, count),
  },
];

/** A worker that serves two tenants, `busy` at PORT and `calm` at CALM_PORT. */
interface Worker extends AsyncDisposable {
  /** The tenants of the requests that were sent to endpoints. */
  readonly begun: readonly string[];
  /** Connects clients, whose first request is answered. */
  clients(port: number, count: number): Promise<TestClient[]>;
}

async function startWorker(transport: TcpTransport, { over = {}, first }: Version): Promise<Worker> {
  await using resources = new AsyncDisposableStack();
  const begun: string[] = [];
  const tenants = new Map<number, string>();
  const recording: TcpTransport = {
    ...transport,
    connect(to, events, window) {
      begun.push(tenants.get(to.port) ?? '');
      return transport.connect(to, events, window);
    },
  };
  const serviceOf = async (namespace: string, port: number): Promise<TestService> => {
    const { endpoint } = resources.use(await answeringEndpoint((socket) => void socket.end(LAST_ANSWER)));
    tenants.set(endpoint.port, namespace);
    const tls = over.settings?.tls && { tls: { ...over.settings.tls, ports: [{ port, alpn: [] }] } };
    return { name: 'web', ...over, namespace, port, endpoints: [endpoint], settings: { httpPorts: [port], ...tls } };
  };
  const registry = new LimiterRegistry(1);
  const limitsOf = (service: TestService): LimiterRows => {
    const rows = [
      registry.allocateRow(`${service.namespace}/web`),
      registry.allocateRow(`${service.namespace}`),
    ] as const;
    for (const row of rows) registry.configure(row, UNLIMITED);
    return [uidOf(service), ...rows];
  };
  const [busy, calm] = [await serviceOf('busy', PORT), await serviceOf('calm', CALM_PORT)];
  let now = 0;
  // Each turn of the event loop has time for one turn of a tenant.
  const options = { transport: recording, limits: registry.addWorker(1), sliceClock: () => ++now };
  const worker = resources.use(await startWorkerInTest(busy, options));
  const { host, listener, answers } = worker;
  const changes = [...tableFor({ a: host }, [calm]).entries.values()].map((entry): Change => ({ kind: 'put', entry }));
  worker.apply({ kind: 'table', changes, slots: [[uidOf(calm), 2]], limits: [limitsOf(busy), limitsOf(calm)] });
  const calmListener = { ...listener, id: 2, key: `TCP/${host}/${CALM_PORT}`, port: CALM_PORT };
  worker.apply({ kind: 'open-listener', listener: calmListener });
  resources.defer(() => worker.apply({ kind: 'close-listener', listener: calmListener }));
  await eventually(() => assert.equal(answers.filter(({ kind }) => kind === 'listening').length, 2));
  const moved = resources.move();
  return {
    begun,
    async clients(port, count) {
      const before = begun.length;
      const tls = over.certificate && { tls: TRUSTING_CLIENT };
      const connect = async (): Promise<TestClient> => {
        const client = moved.use(await connectClient({ host, port, ...tls }));
        await client.send(first);
        await client.waitForBytes(MIN_ANSWER_BYTES);
        return client;
      };
      const clients = await Promise.all(Array.from({ length: count }, connect));
      await eventually(() => assert.equal(begun.length, before + count));
      return clients;
    },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

for (const { name, transport } of TRANSPORTS) {
  suite(name, () => {
    for (const version of VERSIONS) {
      test(`${version.name}: a request of one tenant comes before most of the requests that another sent earlier`, async () => {
        await using worker = await startWorker(transport, version);
        const busy = await worker.clients(PORT, version.connections);
        const [calm] = await worker.clients(CALM_PORT, 1);
        const before = worker.begun.length;
        // Nothing is read between these writes, because the worker runs in this thread.
        const sent = busy.map((client) => client.send(version.requests(REQUESTS / version.connections)));
        sent.push(calm?.send(version.requests(1)) ?? assert.fail());
        await Promise.all(sent);
        const all = before + REQUESTS + 1;
        await eventually(() => assert.equal(worker.begun.length, all));
        const place = worker.begun.slice(before).indexOf('calm');
        // Its bytes may arrive one turn later than those that were sent first.
        assert.ok(place >= 0 && place < 2 * MAX_REQUESTS_PER_TURN, `request ${place}`);
      });
    }
  });
}
