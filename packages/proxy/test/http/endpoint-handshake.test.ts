// Tests that the TLS handshakes with endpoints wait in the queue of the worker, and that their tenants take turns.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { createEndpointStats } from '@weir/model';
import { eventually, makeCertificate } from '@weir/testkit';
import { HandshakeQueue, type WaitingHandshake } from '../../src/accept/handshake-queue.ts';
import { EndpointConnections } from '../../src/http/endpoint-connections.ts';
import { EndpointTls } from '../../src/http/endpoint-tls.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';

const PODS = makeCertificate({ name: 'Pods', isAuthority: true });
const POD = makeCertificate({ name: 'pod', names: ['shop.internal'], issuer: PODS });
const TERMS = { serverName: 'shop.internal', authorities: PODS.certificate, certificate: null };
/** The time of each step by the clock of the test. A turn of the queue has room for two steps. */
const STEP_MS = 1;

interface TlsEndpoint extends AsyncDisposable {
  readonly address: string;
  readonly port: number;
  /** How many handshakes are complete. */
  readonly secured: number;
}

async function tlsEndpoint(): Promise<TlsEndpoint> {
  const state = { secured: 0 };
  const server = createServer({ cert: POD.chain, key: POD.key });
  server.on('secureConnection', () => {
    state.secured += 1;
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, server.address() as AddressInfo, {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

/** A queue whose turns and clock belong to the test. Records the tenants of new handshakes and of steps. */
class QueueInTest {
  readonly arrived: object[] = [];
  readonly stepped: object[] = [];
  isFull = false;
  #now = 0;
  #task: (() => void) | undefined;
  readonly #turns = {
    current: 0,
    nowMs: 0,
    runInNext: (task: () => void): void => {
      this.#task = task;
    },
  };
  readonly #queue = new HandshakeQueue({ now: () => this.#now, turns: this.#turns });

  /** Lets the first turn have no time, so that everything waits until the test runs a turn. */
  constructor() {
    this.#queue.addBegun({}, this.#timed({}, { hasEnded: false, step: () => this.#advance(2) }));
  }

  tryAdd(tenant: object, handshake: WaitingHandshake, bytes: number): boolean {
    if (this.isFull) return false;
    this.arrived.push(tenant);
    return this.#queue.tryAdd(tenant, this.#timed(tenant, handshake), bytes);
  }

  addBegun(tenant: object, handshake: WaitingHandshake): void {
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

  #timed(tenant: object, handshake: WaitingHandshake): WaitingHandshake {
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
    onFailed: (_failure: string, code: string | undefined) => void state.failures.push(code),
    onResponseHead: () => undefined,
    onResponseData: () => undefined,
    onResponseEnd: () => undefined,
    onReadEnd: () => undefined,
    onOtherData: () => undefined,
    onOtherEnd: () => undefined,
    onDrain: () => undefined,
    onThrow: (thrown: unknown) => assert.fail(String(thrown)),
  };
  return Object.assign(state, { connect: () => connections.open(stats, 'full', tls)?.begin(exchange, 1) });
}

for (const { name, transport } of TRANSPORTS) {
  describe(`handshakes with endpoints over ${name}`, () => {
    test('wait in the queue, where a tenant with one handshake does not wait for the many of another tenant', async () => {
      await using endpoint = await tlsEndpoint();
      const queue = new QueueInTest();
      const [busy, quiet] = [tenantOf(queue, transport, endpoint), tenantOf(queue, transport, endpoint)];
      for (let count = 0; count < 50; count += 1) busy.connect();
      await eventually(() => assert.equal(queue.arrived.length, 50));
      quiet.connect();
      await eventually(() => assert.equal(queue.arrived.length, 51));
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

    test('fail without blame for the endpoint if the queue has no place', async () => {
      await using endpoint = await tlsEndpoint();
      const queue = new QueueInTest();
      queue.isFull = true;
      const tenant = tenantOf(queue, transport, endpoint);
      tenant.connect();
      await eventually(() => assert.deepEqual(tenant.failures, ['ENOBUFS']));
      assert.equal(endpoint.secured, 0);
    });
  });
}
