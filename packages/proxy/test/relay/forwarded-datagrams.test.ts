// Tests datagrams that a peer worker forwards. They arrive over a message channel, and a message channel does not catch
// errors that the listener throws.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { AdmissionController } from '../../src/limits/admission.ts';
import { counterRow, createCounterBlock, outcomeColumn } from '../../src/metering/counters.ts';
import { createPeerWorkersMemory, type ListenerPeers, PeerWorkers } from '../../src/relay/peer-workers.ts';
import { hostOf } from '../../src/transport/peer-address.ts';
import { KEY, setUpUdpFlows } from './udp-flow-setup.ts';

const BYTES = new Uint8Array(1);
const CLIENT = { address: '192.0.2.9', host: hostOf('192.0.2.9'), port: 1 };

test('counts and reports a throw for a forwarded datagram, and relays the next datagram', async () => {
  using peers = twoPeers();
  const unroutedCounters = counterRow([createCounterBlock()], 0);
  const reported: unknown[] = [];
  const controller = new AdmissionController();
  let defects = 1;
  const { openFlows } = setUpUdpFlows({
    peerWorkers: peers.owner,
    unroutedCounters: () => unroutedCounters,
    onInternalError: (thrown) => reported.push(thrown),
    admit(uid) {
      if (defects-- > 0) throw new Error('a defect');
      return controller.admit(uid);
    },
  });
  peers.forward();
  await eventually(() => assert.match(String(reported), /a defect/));
  assert.equal(unroutedCounters[outcomeColumn('internal')], 1);
  peers.forward();
  await eventually(() => assert.deepEqual(openFlows(), ['192.0.2.9|1']));
  assert.equal(reported.length, 1);
});

test('a listener that could not be bound receives no forwarded datagrams', async () => {
  using peers = twoPeers();
  const { listener, openFlows } = setUpUdpFlows({ peerWorkers: peers.owner, onFailed: () => undefined });
  listener.onFailed('EADDRINUSE');
  peers.forward();
  await peers.delivered();
  assert.deepEqual(openFlows(), []);
});

interface Peers extends Disposable {
  readonly owner: PeerWorkers;
  /** Forwards one datagram of a flow to `owner`, the worker that has the flow. */
  forward(): void;
  /** Resolves when `owner` has received all datagrams that were forwarded before this call. */
  delivered(): Promise<void>;
}

function twoPeers(): Peers {
  const memory = createPeerWorkersMemory();
  const [owner, peer] = [new PeerWorkers({ ...memory, worker: 1 }), new PeerWorkers({ ...memory, worker: 2 })];
  const ownerListener = owner.join(KEY, () => undefined);
  ownerListener.claim(CLIENT);
  ownerListener.leave();
  const forward = (to: ListenerPeers): void => assert.equal(to.forward(BYTES, CLIENT), true);
  const peerListener = peer.join(KEY, () => assert.fail('the peer has no flow'));
  return {
    owner,
    forward: () => forward(peerListener),
    async delivered() {
      const { promise, resolve } = Promise.withResolvers<void>();
      owner.join('after', () => resolve()).claim(CLIENT);
      forward(peer.join('after', () => undefined));
      await promise;
    },
    [Symbol.dispose]() {
      owner.close();
      peer.close();
    },
  };
}
