// Datagrams that another worker got: they come over a channel, where nothing but the listener itself guards the worker.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { AdmissionController } from '../../src/limits/admission.ts';
import { counterRow, createCounterBlock, outcomeColumn } from '../../src/metering/counters.ts';
import { createPeerWorkersMemory, type ListenerPeers, PeerWorkers } from '../../src/relay/peer-workers.ts';
import { KEY, setUpUdpFlows } from './udp-flow-setup.ts';

const BYTES = new Uint8Array(1);
const CLIENT = { address: '192.0.2.9', port: 1 };

test('a throw in the handling of a forwarded datagram is counted and reported, and the next one is served', async () => {
  using seats = twoSeats();
  const unrouted = counterRow([createCounterBlock()], 0);
  const reported: unknown[] = [];
  const limits = new AdmissionController();
  let bugs = 1;
  const { open } = setUpUdpFlows({
    peerWorkers: seats.owner,
    unroutedCounters: () => unrouted,
    onInternalError: (thrown) => reported.push(thrown),
    admit(uid) {
      if (bugs-- > 0) throw new Error('a bug');
      return limits.admit(uid);
    },
  });
  seats.forward();
  await eventually(() => assert.match(String(reported), /a bug/));
  assert.equal(unrouted[outcomeColumn('internal')], 1);
  seats.forward();
  await eventually(() => assert.deepEqual(open(), ['192.0.2.9|1']));
  assert.equal(reported.length, 1);
});

test('a listener that could not be bound takes nothing from other workers', async () => {
  using seats = twoSeats();
  const { listener, open } = setUpUdpFlows({ peerWorkers: seats.owner, onFailed: () => undefined });
  listener.onFailed('EADDRINUSE');
  seats.forward();
  await seats.taken();
  assert.deepEqual(open(), []);
});

interface Seats extends Disposable {
  readonly owner: PeerWorkers;
  /** One datagram of a flow that the owner has. */
  forward(): void;
  /** Resolves when the owner has taken whatever was forwarded before. */
  taken(): Promise<void>;
}

function twoSeats(): Seats {
  const memory = createPeerWorkersMemory();
  const [owner, other] = [new PeerWorkers({ ...memory, worker: 1 }), new PeerWorkers({ ...memory, worker: 2 })];
  const claimed = owner.join(KEY, () => undefined);
  claimed.claim(CLIENT);
  claimed.leave();
  const forward = (to: ListenerPeers): void => assert.equal(to.forward(BYTES, CLIENT), true);
  const ofOther = other.join(KEY, () => assert.fail('it owns nothing'));
  return {
    owner,
    forward: () => forward(ofOther),
    async taken() {
      const { promise, resolve } = Promise.withResolvers<void>();
      owner.join('after', () => resolve()).claim(CLIENT);
      forward(other.join('after', () => undefined));
      await promise;
    },
    [Symbol.dispose]() {
      owner.close();
      other.close();
    },
  };
}
