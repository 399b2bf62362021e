// The contract of a UDP transport, which all implementations must pass.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import type {
  UdpEndpointSocket,
  UdpListenSocket,
  UdpRecipient,
  UdpTransport,
} from '../../../src/transport/udp-transport.ts';
import { loopbackAddress, PORT } from '../../fixtures/listen-address.ts';
import { UDP_TRANSPORTS } from '../../fixtures/transports.ts';
import { udpClient, udpEcho, udpEndpoint } from '../../fixtures/udp-sockets.ts';

const MAX_DATAGRAM_BYTES = 65_507;

const silent = {
  onListening: (): void => undefined,
  onFailed: (): void => undefined,
  onMessage: (): void => undefined,
  onError: (): void => undefined,
  onThrow(thrown: unknown): never {
    throw thrown;
  },
};

for (const [name, transport] of Object.entries(UDP_TRANSPORTS)) {
  describe(`UDP over ${name}`, () => {
    for (const host of ['127.0.0.1', '::1']) {
      test(`replies from the address that the client sent to (${host})`, async () => {
        await using listener = await bound(transport, { address: host, port: 0 });
        await using client = await udpClient({ host, port: listener.port });
        await client.send('ping');
        const { bytes, from } = await listener.next();
        assert.deepEqual([bytes.toString(), from.port], ['ping', client.port]);
        listener.send(Buffer.from('pong'), from);
        assert.equal((await client.take()).toString(), 'pong');
        await eventually(() => assert.equal(from.sent, 4));
      });

      test(`exchanges datagrams with its endpoint (${host})`, async () => {
        await using endpoint = await udpEcho('', { host });
        await using upstream = connected(transport, endpoint.endpoint);
        upstream.send(Buffer.from('hello'));
        assert.equal((await upstream.next()).toString(), 'hello');
      });
    }

    for (const size of [0, 1, 1_472, 9_000, MAX_DATAGRAM_BYTES]) {
      test(`relays a datagram of ${size} bytes unchanged in both directions`, async () => {
        await using endpoint = await udpEcho();
        await using listener = await bound(transport, { address: '127.0.0.1', port: 0 });
        await using upstream = connected(transport, endpoint.endpoint);
        await using client = await udpClient({ host: '127.0.0.1', port: listener.port });
        const sent = Buffer.from(Array.from({ length: size }, (_, index) => index % 251));
        await client.send(sent);
        const { bytes, from } = await listener.next();
        upstream.send(bytes);
        listener.send(await upstream.next(), from);
        assert.deepEqual(await client.take(), sent);
        await eventually(() => assert.equal(from.sent, size));
      });
    }

    test('does not change a received datagram when more arrive', async () => {
      await using listener = await bound(transport, { address: '127.0.0.1', port: 0 });
      await using client = await udpClient({ host: '127.0.0.1', port: listener.port });
      for (let index = 0; index < 100; index += 1) await client.send(Buffer.alloc(100, index));
      const taken: Buffer[] = [];
      for (let index = 0; index < 100; index += 1) taken.push((await listener.next()).bytes);
      for (const [index, bytes] of taken.entries()) assert.deepEqual(bytes, Buffer.alloc(100, index));
    });

    test('drops a reply to a forged port 0, and sends the next one', async () => {
      await using listener = await bound(transport, { address: '127.0.0.1', port: 0 });
      await using client = await udpClient({ host: '127.0.0.1', port: listener.port });
      await client.send('ping');
      const { from } = await listener.next();
      listener.send(Buffer.from('lost'), { host: from.host, port: 0, onSent: () => assert.fail('it was sent') });
      listener.send(Buffer.from('pong'), from);
      assert.equal((await client.take()).toString(), 'pong');
    });

    test('ignores datagrams that are not from its endpoint', async () => {
      await using endpoint = await udpEndpoint();
      await using upstream = connected(transport, endpoint.endpoint);
      upstream.send(Buffer.from('request'));
      const { reply } = await endpoint.next();
      await using attacker = await udpClient({ host: '127.0.0.1', port: endpoint.peers[0] ?? 0 });
      await attacker.send('forged');
      await reply('genuine');
      assert.equal((await upstream.next()).toString(), 'genuine');
    });

    test('reports a closed port, and works again when it is open', async () => {
      const { endpoint } = await closedEndpoint();
      await using upstream = connected(transport, endpoint);
      upstream.send(Buffer.from('first'));
      assert.equal(await upstream.error(), 'ECONNREFUSED');
      await using _back = await udpEcho('', { port: endpoint.port });
      // Sends twice, because the kernel may report the error of the earlier datagram on the first attempt.
      upstream.send(Buffer.from('second'));
      upstream.send(Buffer.from('second'));
      assert.equal((await upstream.next()).toString(), 'second');
    });

    test('returns undefined if no socket can be opened', () => {
      assert.equal(transport.connect({ address: '255.255.255.255', port: 1 }, silent), undefined);
    });

    test('shares a port between sockets with reusePort, and refuses one without', async () => {
      const at = { address: loopbackAddress(), port: PORT };
      await using first = await bound(transport, at);
      await using second = await bound(transport, at);
      const failed = Promise.withResolvers<string>();
      transport.bind(
        { ...at, reusePort: false },
        { ...silent, onListening: () => failed.reject(new Error('it listens')), onFailed: failed.resolve },
      );
      assert.equal(await failed.promise, 'EADDRINUSE');
      let clients = 0;
      for (; clients < 200 && (first.arrived === 0 || second.arrived === 0); clients += 1) {
        await using client = await udpClient({ host: at.address, port: at.port });
        await client.send('x');
        await eventually(() => assert.equal(first.arrived + second.arrived, clients + 1), { intervalMs: 1 });
      }
      assert.ok(first.arrived > 0 && second.arrived > 0);
    });

    test('reports an address that this host does not have', async () => {
      const failed = Promise.withResolvers<string>();
      const at = { address: '192.0.2.1', port: PORT, reusePort: true };
      transport.bind(at, { ...silent, onFailed: failed.resolve });
      assert.equal(await failed.promise, 'EADDRNOTAVAIL');
    });

    test('releases the port before `close` returns, and neither sends nor calls back afterwards', async () => {
      const at = { address: loopbackAddress(), port: PORT };
      const listener = await bound(transport, at);
      await using client = await udpClient({ host: at.address, port: at.port });
      await client.send('one');
      const { from } = await listener.next();
      await client.send('two');
      listener.close();
      const socket = createSocket('udp4').bind(at.port, at.address);
      await once(socket, 'listening');
      listener.send(Buffer.from('late'), from);
      socket.send('mine', client.port, '127.0.0.1');
      assert.equal((await client.take()).toString(), 'mine');
      assert.deepEqual([listener.arrived, from.sent], [1, 0]);
      socket.close();
    });

    test('neither sends nor calls back after `close` of an endpoint socket', async () => {
      await using endpoint = await udpEndpoint();
      const upstream = connected(transport, endpoint.endpoint);
      upstream.send(Buffer.from('one'));
      const { reply } = await endpoint.next();
      upstream.close();
      upstream.close();
      upstream.send(Buffer.from('two'));
      await reply('late');
      await using other = connected(transport, endpoint.endpoint);
      other.send(Buffer.from('three'));
      assert.equal((await endpoint.next()).bytes.toString(), 'three');
      assert.equal(upstream.arrived, 0);
    });

    test('calls no handler after a handler has closed the listen socket', async () => {
      const at = { address: loopbackAddress(), port: PORT };
      const received = Promise.withResolvers<void>();
      let arrived = 0;
      const listener = await bound(transport, at, () => {
        arrived += 1;
        listener.close();
        received.resolve();
      });
      await using client = await udpClient({ host: at.address, port: at.port });
      await Promise.all(Array.from({ length: 10 }, () => client.send('x')));
      await received.promise;
      await using again = await bound(transport, at);
      await client.send('y');
      assert.equal(String((await again.next()).bytes), 'y');
      assert.equal(arrived, 1);
    });

    test('passes an exception of a handler to onThrow', async () => {
      await using endpoint = await udpEcho();
      const thrown = Promise.withResolvers<unknown>();
      const bug = new Error('a bug');
      const upstream = transport.connect(endpoint.endpoint, {
        ...silent,
        onMessage: () => {
          throw bug;
        },
        onThrow: thrown.resolve,
      });
      upstream?.send(Buffer.from('x'));
      assert.equal(await thrown.promise, bug);
      upstream?.close();
    });
  });
}

interface ReceivedDatagram {
  readonly bytes: Buffer;
  readonly from: UdpRecipient & { sent: number };
}

interface BoundListener extends UdpListenSocket, AsyncDisposable {
  readonly port: number;
  readonly arrived: number;
  next(): Promise<ReceivedDatagram>;
}

async function bound(
  transport: UdpTransport,
  at: { address: string; port: number },
  onArrival = (): void => undefined,
): Promise<BoundListener> {
  const port = at.port > 0 ? at.port : await freeUdpPort(at.address);
  const datagrams = queue<ReceivedDatagram>();
  let arrived = 0;
  const listening = Promise.withResolvers<void>();
  const listener = transport.bind(
    { address: at.address, port, reusePort: true },
    {
      ...silent,
      onListening: listening.resolve,
      onFailed: (code) => listening.reject(new Error(code)),
      onMessage(bytes, host, from) {
        arrived += 1;
        const peer = {
          host,
          port: from,
          sent: 0,
          onSent(count: number) {
            peer.sent += count;
          },
        };
        datagrams.put({ bytes: Buffer.from(bytes), from: peer });
        onArrival();
      },
    },
  );
  await listening.promise;
  return {
    port,
    get arrived() {
      return arrived;
    },
    next: datagrams.take,
    send: (bytes, to) => listener.send(bytes, to),
    flush: () => listener.flush(),
    takeDropped: () => listener.takeDropped(),
    close: () => listener.close(),
    [Symbol.asyncDispose]: async () => listener.close(),
  };
}

interface ConnectedUpstream extends UdpEndpointSocket, AsyncDisposable {
  readonly arrived: number;
  next(): Promise<Buffer>;
  error(): Promise<string>;
}

function connected(transport: UdpTransport, to: { address: string; port: number }): ConnectedUpstream {
  const messages = queue<Buffer>();
  const errors = queue<string>();
  let arrived = 0;
  const upstream = transport.connect(to, {
    ...silent,
    onMessage(bytes) {
      arrived += 1;
      messages.put(Buffer.from(bytes));
    },
    onError: errors.put,
  });
  assert.ok(upstream !== undefined);
  return {
    get arrived() {
      return arrived;
    },
    next: messages.take,
    error: errors.take,
    send: (bytes) => upstream.send(bytes),
    close: () => upstream.close(),
    [Symbol.asyncDispose]: async () => upstream.close(),
  };
}

function queue<T>(): { put(item: T): void; take(): Promise<T> } {
  const items: T[] = [];
  const events = new EventEmitter();
  return {
    put(item) {
      items.push(item);
      events.emit('put');
    },
    async take() {
      while (items.length === 0) await once(events, 'put');
      return items.shift() as T;
    },
  };
}

async function closedEndpoint(): Promise<{ endpoint: { address: string; port: number } }> {
  await using endpoint = await udpEndpoint();
  return { endpoint: endpoint.endpoint };
}

async function freeUdpPort(address: string): Promise<number> {
  await using endpoint = await udpEndpoint({ host: address });
  return endpoint.endpoint.port;
}
