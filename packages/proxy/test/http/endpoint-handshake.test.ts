// Tests that the TLS handshakes with endpoints wait in the queue of the worker, and that their tenants take turns.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createEndpointStats } from '@weir/model';
import { eventually, makeCertificate } from '@weir/testkit';
import { HandshakeQueue, type WaitingHandshake } from '../../src/accept/handshake-queue.ts';
import type { EndpointConnection } from '../../src/http/endpoint-connection.ts';
import { EndpointConnections } from '../../src/http/endpoint-connections.ts';
import { EndpointTls } from '../../src/http/endpoint-tls.ts';
import { METHOD } from '../../src/http/h1/methods.ts';
import type { FailureDetails } from '../../src/http/request-carrier.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';

const PODS = makeCertificate({ name: 'Pods', isAuthority: true });
const POD = makeCertificate({ name: 'pod', names: ['shop.internal'], issuer: PODS });
const TERMS = { serverName: 'shop.internal', authorities: PODS.certificate, certificate: null };
/** How long each step takes by the clock of the test. One turn of the queue has time for two steps. */
const STEP_MS = 1;

interface TlsEndpoint extends AsyncDisposable {
  readonly address: string;
  readonly port: number;
  /** How many handshakes are complete. */
  readonly secured: number;
  /** How many connections are open. */
  readonly open: number;
}

async function tlsEndpoint(): Promise<TlsEndpoint> {
  const state = { secured: 0, open: 0 };
  const sockets = new Set<Socket>();
  const server = createServer({ cert: POD.chain, key: POD.key });
  server.on('secureConnection', () => {
    state.secured += 1;
  });
  server.on('connection', (socket: Socket) => {
    state.open += 1;
    sockets.add(socket);
    socket.on('close', () => {
      state.open -= 1;
    });
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, server.address() as AddressInfo, {
    async [Symbol.asyncDispose]() {
      // `closeAllConnections` does not close connections whose handshake is not complete.
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  });
}

/** A queue whose turns and clock belong to the test. Records the tenants of the steps that have run. */
class QueueInTest {
  readonly stepped: unknown[] = [];
  /** How many steps of handshakes with endpoints were added. */
  waiting = 0;
  #now = 0;
  #task: (() => void) | undefined;
  readonly #turns = {
    current: 0,
    nowMs: 0,
    runInNext: (task: () => void): void => {
      this.#task = task;
    },
    runAtEnd: (): void => assert.fail(),
  };
  readonly #queue = new HandshakeQueue({ now: () => this.#now, turns: this.#turns });

  /** Lets the first turn have no time, so that everything waits until the test runs a turn. */
  constructor() {
    this.#queue.addBegun({}, this.#timed({}, { hasEnded: false, step: () => this.#advance(2) }));
  }

  /** Adds new handshakes of clients. */
  addClients(tenant: object, count: number): void {
    const client = { hasEnded: false, step: () => undefined };
    for (let each = 0; each < count; each += 1) assert.ok(this.#queue.tryAdd(tenant, this.#timed('client', client), 0));
  }

  addBegun(tenant: object, handshake: WaitingHandshake): void {
    this.waiting += 1;
    this.#queue.addBegun(tenant, this.#timed(tenant, handshake));
  }

  /** Runs one turn, if anything waits. */
  turn(): void {
    const task = this.#task;
    this.#task = undefined;
    this.#turns.current += 1;
    task?.();
  }

  #advance(ms: number): void {
    this.#now += ms;
  }

  #timed(tenant: unknown, handshake: WaitingHandshake): WaitingHandshake {
    return {
      get hasEnded() {
        return handshake.hasEnded;
      },
      step: () => {
        this.stepped.push(tenant);
        this.#advance(STEP_MS);
        handshake.step();
      },
    };
  }
}

interface Tenant {
  /** The codes of the connections that have failed before they were connected. */
  readonly failures: (string | undefined)[];
  readonly connected: number;
  connect(): void;
  /** Gives up the last connection. */
  reset(): void;
}

function tenantOf(queue: QueueInTest, transport: TcpTransport, endpoint: TlsEndpoint): Tenant {
  const state = { failures: [] as (string | undefined)[], connected: 0 };
  const connections = new EndpointConnections(transport);
  const stats = createEndpointStats({ address: endpoint.address, port: endpoint.port });
  const tls = new EndpointTls(TERMS, undefined, { queue, tenant: state });
  const exchange = {
    onConnected: () => {
      state.connected += 1;
    },
    onFailed: (_failure: string, { errno }: FailureDetails) => void state.failures.push(errno),
    onResponseHead: () => undefined,
    onResponseData: () => undefined,
    onResponseEnd: () => undefined,
    onReadEnd: () => undefined,
    onOtherData: () => undefined,
    onOtherEnd: () => undefined,
    onDrain: () => undefined,
    onThrow: (thrown: unknown) => assert.fail(String(thrown)),
  };
  let last: EndpointConnection | undefined;
  return Object.assign(state, {
    connect() {
      last = connections.open(stats, 'full', tls);
      last?.begin(exchange, METHOD.get, 'none');
    },
    reset: () => last?.reset(),
  });
}

for (const { name, transport } of TRANSPORTS) {
  describe(`handshakes with endpoints over ${name}`, () => {
    test('wait in the queue, where a tenant with one handshake does not wait for the many of another tenant', async () => {
      await using endpoint = await tlsEndpoint();
      const queue = new QueueInTest();
      const [busy, quiet] = [tenantOf(queue, transport, endpoint), tenantOf(queue, transport, endpoint)];
      for (let count = 0; count < 50; count += 1) busy.connect();
      await eventually(() => assert.equal(queue.waiting, 50));
      quiet.connect();
      await eventually(() => assert.equal(queue.waiting, 51));
      assert.equal(queue.stepped.length, 1, 'only the step that used up the first turn');
      queue.turn();
      assert.deepEqual(queue.stepped.slice(1), [busy, quiet], 'one ClientHello of each tenant');
      assert.equal(endpoint.secured, 0);
      // All handshakes of the tenant with many get their turns too.
      await eventually(() => {
        queue.turn();
        assert.deepEqual([busy.connected, quiet.connected, endpoint.secured], [50, 1, 51]);
      });
      assert.deepEqual([...busy.failures, ...quiet.failures], []);
    });

    test('go before new handshakes with clients of the tenant', async () => {
      await using endpoint = await tlsEndpoint();
      const queue = new QueueInTest();
      const tenant = tenantOf(queue, transport, endpoint);
      queue.addClients(tenant, 3);
      tenant.connect();
      await eventually(() => assert.equal(queue.waiting, 1));
      queue.turn();
      assert.deepEqual(queue.stepped.slice(1, 3), [tenant, 'client']);
      // The test runs no further turn, in which the handshake would notice its end.
      tenant.reset();
    });

    test('end with their requests, also while they wait', async () => {
      await using endpoint = await tlsEndpoint();
      const queue = new QueueInTest();
      const tenant = tenantOf(queue, transport, endpoint);
      tenant.connect();
      await eventually(() => assert.equal(queue.waiting, 1));
      tenant.reset();
      queue.turn();
      assert.equal(queue.stepped.length, 1, 'no ClientHello');
      await eventually(() => assert.equal(endpoint.open, 0));
    });
  });
}
