import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { CONNECTIONS } from '../../src/metering/counters.ts';
import { createPeerWorkersMemory, PeerWorkers } from '../../src/relay/peer-workers.ts';
import { removeFlowOwner } from '../../src/relay/udp-flow-owners.ts';
import { hostOf } from '../../src/transport/peer-address.ts';
import { PORT } from '../fixtures/listen-address.ts';
import type { TestService } from '../fixtures/tables.ts';
import { UDP_TRANSPORTS } from '../fixtures/transports.ts';
import { type UdpClient, udpClient, udpEcho } from '../fixtures/udp-sockets.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const CLIENTS = 40;
const KEY = 'UDP/192.0.2.1/53';

for (const [name, udpTransport] of Object.entries(UDP_TRANSPORTS)) {
  test(`${name}: flows that the kernel gives to a new worker stay with their owner until its listener closes`, async () => {
    await using one = await udpEcho('one');
    await using two = await udpEcho('two');
    const endpoints = [one.endpoint, two.endpoint];
    const voice: TestService = { name: 'voice', protocol: 'UDP', port: PORT, endpoints };
    const memory = createPeerWorkersMemory();
    const peerWorkers = [1, 2].map((worker) => new PeerWorkers({ ...memory, worker }));
    using _peers = { [Symbol.dispose]: () => void peerWorkers.map((peers) => peers.close()) };
    const [firstPeers, secondPeers] = peerWorkers;
    assert.ok(firstPeers !== undefined && secondPeers !== undefined);
    using first = await startWorkerInTest(voice, { peerWorkers: firstPeers, udpTransport });
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => udpClient(first)));
    await using _clients = { [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map(close))) };
    const ask = (): Promise<string[]> => Promise.all(clients.map((client) => client.ask('')));
    const before = await ask();
    using second = await startWorkerInTest(voice, { peerWorkers: secondPeers, host: first.host, udpTransport });
    assert.deepEqual(await ask(), before);
    assert.equal(one.peers.length + two.peers.length, CLIENTS);
    await using newClients = await connectUntilServedBy(second);
    assert.ok(newClients.count > 0);
    const opened = (): number => second.row[CONNECTIONS] ?? 0;
    const known = opened();

    first.apply({ kind: 'close-listener', listener: first.listener });
    assert.deepEqual(await ask(), before);
    assert.equal(opened(), known + CLIENTS);
  });
}

test('bounds the datagrams in flight to a busy worker, and forwards nothing to a worker that has ended', async () => {
  const memory = createPeerWorkersMemory();
  const [owner, peer] = [new PeerWorkers({ ...memory, worker: 1 }), new PeerWorkers({ ...memory, worker: 2 })];
  using _both = { [Symbol.dispose]: () => void [owner, peer].map((each) => each.close()) };
  const received: number[] = [];
  const client = { address: '192.0.2.9', host: hostOf('192.0.2.9'), port: 1 };
  const ownerListener = owner.join(KEY, (bytes) => received.push(bytes[0] ?? -1));
  const peerListener = peer.join(KEY, () => assert.fail('the peer has no flow'));
  ownerListener.claim(client);
  for (let index = 0; index < 2_000; index += 1) assert.equal(peerListener.forward(Uint8Array.of(index), client), true);
  await eventually(() => assert.equal(received.length, 1_024));
  assert.equal(peerListener.forward(Uint8Array.of(7), client), true);
  await eventually(() => assert.equal(received.length, 1_025));
  assert.equal(ownerListener.forward(Uint8Array.of(1), client), false);
  removeFlowOwner(memory.owners, 1);
  assert.equal(peerListener.forward(Uint8Array.of(1), client), false);
});

test('forwards a copy of the datagram only, because the transport uses its memory again', async () => {
  const memory = createPeerWorkersMemory();
  const [owner, peer] = [new PeerWorkers({ ...memory, worker: 1 }), new PeerWorkers({ ...memory, worker: 2 })];
  using _both = { [Symbol.dispose]: () => void [owner, peer].map((each) => each.close()) };
  const client = { address: '192.0.2.9', host: hostOf('192.0.2.9'), port: 1 };
  const received = Promise.withResolvers<{ bytes: Uint8Array; from: typeof client }>();
  owner.join(KEY, (bytes, from) => received.resolve({ bytes, from })).claim(client);
  const ring = new Uint8Array(4_096).fill(7);
  peer.join(KEY, () => undefined).forward(ring.subarray(64, 67), client);
  ring.fill(0);
  const { bytes, from } = await received.promise;
  assert.deepEqual([[...bytes], bytes.buffer.byteLength, from], [[7, 7, 7], 3, client]);
});

/** Opens clients until the kernel assigns a client to this worker, which shows that the workers share the port. */
async function connectUntilServedBy(worker: {
  readonly host: string;
  readonly port: number;
  readonly row: Float64Array;
}): Promise<AsyncDisposable & { readonly count: number }> {
  const clients: UdpClient[] = [];
  while (worker.row[CONNECTIONS] === 0 && clients.length < 200) {
    const client = await udpClient(worker);
    clients.push(client);
    await client.ask('');
  }
  return {
    count: worker.row[CONNECTIONS] ?? 0,
    [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map(close))),
  };
}

async function close(client: UdpClient): Promise<void> {
  await client[Symbol.asyncDispose]();
}
