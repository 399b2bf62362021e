import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connectClient, type TestClient } from '@weir/testkit';
import { connectTls, greetingFrom } from '../fixtures/tls-echo-server.ts';

/** Clients with open connections. Each host has three TCP connections, one UDP flow, and one TLS connection per server name. */
export interface LongLivedClients extends AsyncDisposable {
  /** Sends several messages on each connection and flow, and checks the echoes. */
  echoAll(): Promise<void>;
  /** Connects once to each server name on each host, and checks that tenant b responds. */
  connectNewClients(): Promise<void>;
  /** Closes the TCP connections. Checks that every byte was echoed and that each UDP flow kept its source port at the endpoint. */
  closeAll(): Promise<void>;
}

interface ClientOptions {
  readonly hosts: readonly string[];
  readonly tcpPort: number;
  readonly udpPort: number;
  /** The port that tenants share by host name, and the server names of tenant b. */
  readonly secure: { readonly port: number; readonly names: readonly string[] };
  /** Source addresses from which datagrams have reached the endpoint of the UDP Service. */
  readonly udpPeers: ReadonlySet<string>;
}

const CONNECTIONS = 3;
const ROUNDS = 5;
const BYTES = 3_000;
const SEED = 11;
const DATAGRAM_TIMEOUT_MS = 15_000;

export async function connectLongLivedClients(options: ClientOptions): Promise<LongLivedClients> {
  const { hosts, tcpPort, udpPort, secure, udpPeers } = options;
  const stack = new AsyncDisposableStack();
  const streams: { readonly client: TestClient; bytes: number }[] = [];
  for (const host of hosts) {
    for (let i = 0; i < CONNECTIONS; i += 1) {
      streams.push({ client: stack.use(await connectClient({ host, port: tcpPort })), bytes: 0 });
    }
  }
  const flows = await Promise.all(hosts.map((host) => openFlow(host, udpPort)));
  for (const flow of flows) stack.use(flow);
  const tlsAddresses = hosts.flatMap((host) =>
    secure.names.map((servername) => ({ host, port: secure.port, servername })),
  );
  const named = await Promise.all(tlsAddresses.map(connectTls));
  for (const client of named) stack.use(client);
  return {
    async echoAll() {
      for (let round = 0; round < ROUNDS; round += 1) {
        await Promise.all([
          ...streams.map(echo),
          ...flows.map((flow) => flow.sendAndReceive(`${round} ${SEED}`)),
          ...named.map(async (client) => assert.equal(await client.echo(`${round} ${SEED}`), `${round} ${SEED}`)),
        ]);
      }
    },
    async connectNewClients() {
      for (const greeting of await Promise.all(tlsAddresses.map(greetingFrom))) assert.equal(greeting, 'b');
    },
    async closeAll() {
      for (const { client, bytes } of streams) {
        await client.end();
        assert.deepEqual(await client.ended, { kind: 'end' });
        assert.equal(client.received, bytes);
      }
      assert.equal(udpPeers.size, hosts.length, 'each flow kept its source port');
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function echo(stream: { readonly client: TestClient; bytes: number }): Promise<void> {
  const sent = Buffer.alloc(BYTES, `${SEED} ${stream.bytes} `);
  stream.bytes += BYTES;
  await stream.client.send(sent);
  assert.deepEqual(await stream.client.take(BYTES), sent);
}

interface Flow extends AsyncDisposable {
  sendAndReceive(text: string): Promise<void>;
}

async function openFlow(host: string, port: number): Promise<Flow> {
  const socket = createSocket('udp4');
  socket.connect(port, host);
  await once(socket, 'connect');
  return {
    async sendAndReceive(text) {
      const response = once(socket, 'message', { signal: AbortSignal.timeout(DATAGRAM_TIMEOUT_MS) });
      socket.send(text);
      assert.equal(String((await response)[0]), text);
    },
    [Symbol.asyncDispose]: () => new Promise<void>((done) => socket.close(() => done())),
  };
}
