// Tests the parts of the epoll transport that have no counterpart in the other transports: the arena, which all sockets of a thread share,
// and the sends at the end of a turn of the event loop.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../../src/metering/counters.ts';
import { datagramSlots } from '../../../src/transport/udp/datagram-arena.ts';
import { epollUdpTransport } from '../../../src/transport/udp/epoll-udp-transport.ts';
import {
  NOT_SENT,
  type UdpEndpointSocket,
  type UdpListenSocket,
  type UdpRecipient,
} from '../../../src/transport/udp-transport.ts';
import { loopbackAddress, PORT } from '../../fixtures/listen-address.ts';
import { type UdpClient, udpClient, udpEcho, udpEndpoint } from '../../fixtures/udp-sockets.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';

const EAGAIN = -11;
const ENOBUFS = -105;
const EINVAL = -22;
const MAX_DATAGRAM_BYTES = 65_507;
/** More datagrams than the arena has slots, but few enough for the receive buffers of the relay and of the endpoint. */
const BATCH = 100;
const FLOWS = 50;

test('relays batches that are larger than the arena, with datagrams of 0 and 65,507 bytes, in order and unchanged', async () => {
  await using echo = await udpEcho();
  await using relay = await startRelay({ endpoint: echo.endpoint });
  await using client = await udpClient(relay);
  const sent = Array.from({ length: 300 }, (_, index) => datagramOf(index));
  for (let first = 0; first < sent.length; first += BATCH) {
    const batch = sent.slice(first, first + BATCH);
    // All datagrams are in the kernel's buffer before the relay receives the first one.
    await Promise.all(batch.map((datagram) => client.send(datagram)));
    for (const datagram of batch) assert.deepEqual(await client.take(), datagram);
  }
  assert.equal(
    relay.sentBytes(),
    sent.reduce((sum, { length }) => sum + length, 0),
  );
});

test('gives the answers of many flows to their own clients, in order', async () => {
  await using echo = await udpEcho();
  const service = { name: 'voice', protocol: 'UDP', port: PORT, endpoints: [echo.endpoint] } as const;
  using worker = await startWorkerInTest(service, { udpTransport: epollUdpTransport });
  const clients = await Promise.all(Array.from({ length: FLOWS }, () => udpClient(worker)));
  await using _clients = { [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map(close))) };
  let bytes = 0;
  for (let round = 0; round < 25; round += 1) {
    const sends: Promise<void>[] = [];
    for (let index = 0; index < BATCH / FLOWS; index += 1) {
      for (const [flow, client] of clients.entries()) sends.push(client.send(patternOf(flow, round * 10 + index)));
    }
    await Promise.all(sends);
    for (const [flow, client] of clients.entries()) {
      for (let index = 0; index < BATCH / FLOWS; index += 1) {
        const expected = patternOf(flow, round * 10 + index);
        assert.deepEqual(await client.take(), expected);
        bytes += expected.length;
      }
    }
  }
  assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [bytes, bytes, FLOWS]);
});

test('sends a batch to another endpoint when its endpoint refuses the first datagram', async () => {
  await using second = await udpEndpoint();
  const refusing = await closedEndpoint();
  const codes: string[] = [];
  await using relay = await startRelay({
    endpoint: refusing,
    onError(code, unsent) {
      codes.push(code);
      if (code !== NOT_SENT) relay.moveTo(second.endpoint);
      if (unsent !== undefined) relay.endpointSocket().send(unsent);
    },
  });
  await using client = await udpClient(relay);
  // The kernel takes the first datagram, and answers with an ICMP error before it takes the second one.
  const sent = Array.from({ length: 20 }, (_, index) => `datagram ${index}`);
  await Promise.all(sent.map((datagram) => client.send(datagram)));
  // A single datagram may be received first, and the other ones in the next turn.
  const received: string[] = [];
  while (received.at(-1) !== sent.at(-1)) received.push(String((await second.next()).bytes));
  assert.deepEqual(received, sent.slice(1));
  assert.equal(codes.filter((code) => code === 'ECONNREFUSED').length, 1, codes.join());
});

test('moves all flows from a refusing endpoint, and loses only the datagram that the endpoint refused', async () => {
  await using echo = await udpEcho();
  const endpoints = [await closedEndpoint(), echo.endpoint];
  const service = { name: 'voice', protocol: 'UDP', port: PORT, endpoints } as const;
  using worker = await startWorkerInTest(service, { udpTransport: epollUdpTransport });
  for (let round = 0; round < 10; round += 1) {
    await using client = await udpClient(worker);
    const sent = Array.from({ length: 20 }, (_, index) => `${round}: ${index}`);
    await Promise.all(sent.map((datagram) => client.send(datagram)));
    const answers: string[] = [];
    while (answers.at(-1) !== sent.at(-1)) answers.push(String(await client.take()));
    assert.deepEqual(answers, sent.slice(-answers.length));
    assert.ok(answers.length >= sent.length - 1, `${answers.length} answers`);
  }
  assert.deepEqual(worker.outcomes(), {});
});

// A send buffer is never full on loopback, because the loopback device takes each datagram at once. So the test answers for the kernel.
test('drops the batch if the send buffer is full, counts nothing, and sends the next batch', async (context) => {
  await using echo = await udpEcho();
  await using relay = await startRelay({ endpoint: echo.endpoint, onError: assert.fail });
  await using client = await udpClient(relay);
  await client.ask('first');
  for (const [calls, result] of [
    [['sendToEndpoint', 'sendSegments'], EAGAIN],
    [['sendToEndpoint', 'sendSegments'], ENOBUFS],
    [['sendToClients'], EAGAIN],
    [['sendToClients'], ENOBUFS],
  ] as const) {
    const [relayed, sentBefore] = [relay.received(), relay.sentBytes()];
    const full = calls.map((call) => mock.method(datagramSlots, call, () => result));
    context.after(() => mock.restoreAll());
    await Promise.all(Array.from({ length: 10 }, () => client.send('lost')));
    await eventually(() => assert.equal(relay.received(), relayed + 10));
    await eventually(() => assert.ok(full.some((each) => each.mock.callCount() > 0)));
    await eventually(() => assert.equal(relay.answered(), echo.received));
    mock.restoreAll();
    assert.equal(relay.sentBytes(), sentBefore);
    assert.equal(await client.ask('next'), 'next');
  }
});

test('sends datagrams of the same length as segments, or as datagrams if the path does not support segments', async (context) => {
  await using echo = await udpEcho();
  await using relay = await startRelay({ endpoint: echo.endpoint, onError: assert.fail });
  await using client = await udpClient(relay);
  const exchange = async (lengths: readonly number[]): Promise<void> => {
    const sent = lengths.map((length, index) => Buffer.alloc(length, index));
    await Promise.all(sent.map((datagram) => client.send(datagram)));
    for (const datagram of sent) assert.deepEqual(await client.take(), datagram);
  };
  context.after(() => mock.restoreAll());
  const supported = mock.method(datagramSlots, 'sendSegments');
  const same = Array.from({ length: 40 }, () => 1_200);
  await exchange(same);
  await exchange([...same, 0, 0, 0, 7, 7, 1_200, 1_200, 9]);
  assert.ok(supported.mock.callCount() > 0);
  mock.restoreAll();
  const refused = mock.method(datagramSlots, 'sendSegments', () => EINVAL);
  await exchange(same);
  await exchange(same);
  assert.equal(refused.mock.callCount(), 1);
});

test('sends the datagrams of a handler even if the handler closes the socket', async () => {
  await using endpoint = await udpEndpoint();
  const received = Promise.withResolvers<void>();
  await using relay = await startRelay({
    endpoint: endpoint.endpoint,
    onRelayed() {
      relay.endpointSocket().close();
      relay.listener.close();
      received.resolve();
    },
  });
  await using client = await udpClient(relay);
  await client.send('last words');
  await received.promise;
  assert.equal(String((await endpoint.next()).bytes), 'last words');
});

test('counts the datagrams that the kernel drops', async () => {
  await using endpoint = await udpEndpoint();
  await using relay = await startRelay({ endpoint: endpoint.endpoint });
  await using client = await udpClient(relay);
  assert.equal(relay.listener.takeDropped(), 0);
  const flood = Array.from({ length: 600 }, () => client.send(Buffer.alloc(60_000)));
  await Promise.all(flood);
  let dropped = 0;
  await eventually(() => {
    dropped += relay.listener.takeDropped();
    assert.equal(relay.received() + dropped, flood.length);
  });
  assert.ok(dropped > 0);
  assert.equal(relay.listener.takeDropped(), 0);
});

interface Relay extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly listener: UdpListenSocket;
  endpointSocket(): UdpEndpointSocket;
  moveTo(endpoint: { readonly address: string; readonly port: number }): void;
  /** The number of datagrams from clients. */
  received(): number;
  /** The number of datagrams from endpoints. */
  answered(): number;
  sentBytes(): number;
}

interface RelayOptions {
  readonly endpoint: { readonly address: string; readonly port: number };
  readonly onError?: (code: string, unsent?: Uint8Array) => void;
  readonly onRelayed?: () => void;
}

/** Relays the datagrams of one client to an endpoint and back, without a flow. */
async function startRelay({ endpoint, onError, onRelayed }: RelayOptions): Promise<Relay> {
  const at = { address: loopbackAddress(), port: PORT, reusePort: true };
  let [received, answered, sentBytes] = [0, 0, 0];
  let client: UdpRecipient | undefined;
  const onThrow = (thrown: unknown): never => assert.fail(String(thrown));
  const connect = (to: RelayOptions['endpoint']): UdpEndpointSocket => {
    const socket = epollUdpTransport.connect(to, {
      onMessage(bytes) {
        answered += 1;
        if (client !== undefined) listener.send(bytes, client);
      },
      onError: (code, unsent) => onError?.(code, unsent),
      onThrow,
    });
    assert.ok(socket !== undefined);
    return socket;
  };
  const listening = Promise.withResolvers<void>();
  const onSent = (bytes: number): void => {
    sentBytes += bytes;
  };
  const listener = epollUdpTransport.bind(at, {
    onListening: listening.resolve,
    onFailed: assert.fail,
    onMessage(bytes, host, port) {
      received += 1;
      client = { host, port, onSent };
      socket.send(bytes);
      onRelayed?.();
    },
    onThrow,
  });
  let socket = connect(endpoint);
  await listening.promise;
  return {
    host: at.address,
    port: at.port,
    listener,
    endpointSocket: () => socket,
    moveTo(to) {
      socket.close();
      socket = connect(to);
    },
    received: () => received,
    answered: () => answered,
    sentBytes: () => sentBytes,
    async [Symbol.asyncDispose]() {
      listener.close();
      socket.close();
    },
  };
}

/** The bytes depend on the index. Now and then a datagram is empty or has the maximum size. */
function datagramOf(index: number): Buffer {
  const length = index % 100 === 7 ? MAX_DATAGRAM_BYTES : index % 10 === 3 ? 0 : 1 + ((index * 37) % 100);
  return Buffer.from(Uint8Array.from({ length }, (_, at) => (index * 7 + at) % 251));
}

/** A datagram of which each byte depends on the flow. */
function patternOf(flow: number, index: number): Buffer {
  const datagram = Buffer.alloc(16 + ((flow * 31 + index * 17) % 600), flow);
  datagram.writeUInt32LE(index, 0);
  return datagram;
}

async function closedEndpoint(): Promise<{ address: string; port: number }> {
  await using endpoint = await udpEndpoint();
  return endpoint.endpoint;
}

async function close(client: UdpClient): Promise<void> {
  await client[Symbol.asyncDispose]();
}
