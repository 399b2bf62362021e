import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { CONNECTIONS } from '../../src/metering/counters.ts';
import { createPeerWorkersMemory, PeerWorkers } from '../../src/relay/peer-workers.ts';
import { removeFlowOwner } from '../../src/relay/udp-flow-owners.ts';
import { PORT } from '../fixtures/listen-address.ts';
import type { TestService } from '../fixtures/tables.ts';
import { type UdpClient, udpClient, udpEcho } from '../fixtures/udp-sockets.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const CLIENTS = 40;
const KEY = 'UDP/192.0.2.1/53';

test('flows that the kernel gives to a new worker stay with the one that has them, until it closes', async () => {
  await using one = await udpEcho('one');
  await using two = await udpEcho('two');
  const endpoints = [one.endpoint, two.endpoint];
  const voice: TestService = { name: 'voice', protocol: 'UDP', port: PORT, endpoints };
  const memory = createPeerWorkersMemory();
  const seats = [1, 2].map((worker) => new PeerWorkers({ ...memory, worker }));
  using _seats = { [Symbol.dispose]: () => void seats.map((seat) => seat.close()) };
  const [firstSeat, secondSeat] = seats;
  assert.ok(firstSeat !== undefined && secondSeat !== undefined);
  using first = await startWorkerInTest(voice, { peerWorkers: firstSeat });
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => udpClient(first)));
  await using _clients = { [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map(close))) };
  const ask = (): Promise<string[]> => Promise.all(clients.map((client) => client.ask('')));
  const before = await ask();
  using second = await startWorkerInTest(voice, { peerWorkers: secondSeat, host: first.host });
  assert.deepEqual(await ask(), before);
  assert.equal(one.peers.length + two.peers.length, CLIENTS);
  await using newcomers = await newcomersOf(second);
  assert.ok(newcomers.count > 0);
  const known = one.peers.length + two.peers.length;

  first.apply({ kind: 'close-listener', listener: first.listener });
  assert.deepEqual(await ask(), before);
  assert.equal(one.peers.length + two.peers.length, known + CLIENTS);
});

test('what goes to a worker that does not take it is bounded, and nothing goes to one that is gone', async () => {
  const memory = createPeerWorkersMemory();
  const [owner, other] = [new PeerWorkers({ ...memory, worker: 1 }), new PeerWorkers({ ...memory, worker: 2 })];
  using _both = { [Symbol.dispose]: () => void [owner, other].map((each) => each.close()) };
  const taken: number[] = [];
  const client = { address: '192.0.2.9', port: 1 };
  const ofOwner = owner.join(KEY, (bytes) => taken.push(bytes[0] ?? -1));
  const ofOther = other.join(KEY, () => assert.fail('it owns nothing'));
  ofOwner.claim(client);
  for (let index = 0; index < 2_000; index += 1) assert.equal(ofOther.forward(Uint8Array.of(index), client), true);
  await eventually(() => assert.equal(taken.length, 1_024));
  assert.equal(ofOther.forward(Uint8Array.of(7), client), true);
  await eventually(() => assert.equal(taken.length, 1_025));
  assert.equal(ofOwner.forward(Uint8Array.of(1), client), false);
  removeFlowOwner(memory.owners, 1);
  assert.equal(ofOther.forward(Uint8Array.of(1), client), false);
});

/** So many that the kernel gives some of them to this worker, too: which shows that the port is shared. */
async function newcomersOf(worker: {
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
