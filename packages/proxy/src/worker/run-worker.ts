// A worker thread: the pulse, the ticking clock, and orders from the main thread. Anything thrown here that is not a
// connection's own ends the worker; the main thread replaces it.
import { parentPort, workerData } from 'node:worker_threads';
import { createAffinityMemory } from '@weir/model/data-plane';
import { Sealer, Secret } from '@weir/runtime/sealing';
import { descriptorLimit } from '../open-descriptors.ts';
import { LocalFailures } from '../relay/local-failures.ts';
import type { Transport } from '../tcp/transport.ts';
import { Neighbours } from '../udp/neighbours.ts';
import type { UdpTransport } from '../udp/transport.ts';
import { DescriptorRoom } from './descriptor-room.ts';
import { watchEventLoopDelay } from './event-loop-delay.ts';
import { type Answer, PULSE_MS, type SentOrder, type WorkerBirth } from './messages.ts';
import { Outbox } from './outbox.ts';
import { RelayWorker } from './relay-worker.ts';
import { Troubles } from './troubles.ts';

const TICK_MS = 1_000;

export function runWorker(transport: Transport, udpTransport?: UdpTransport): void {
  const port = parentPort;
  if (port === null) throw new Error('this runs only in a worker thread');
  const { node, pulse, slabs, affinity, limits, neighbours, trustProxyProtocol, fleetSecret, workers, delays } =
    workerData as WorkerBirth;

  const outbox = new Outbox<Answer>((answers) => port.postMessage(answers), setImmediate);
  const answer = (said: Answer): void => outbox.say(said);
  const failures = new LocalFailures((counts) => answer({ kind: 'local-failures', counts }));
  const watchDelay = watchEventLoopDelay(new Float64Array(delays));
  const troubles = new Troubles((what, text) => answer({ kind: 'trouble', what, text }));
  const worker = new RelayWorker({
    node,
    slabs,
    trustProxyProtocol,
    memory: createAffinityMemory(new Uint32Array(affinity)),
    limits,
    neighbours: new Neighbours(neighbours),
    descriptors: new DescriptorRoom({ limit: descriptorLimit(), workers }),
    sealer: fleetSecret === undefined ? undefined : new Sealer(new Secret(fleetSecret)),
    transport,
    ...(udpTransport === undefined ? {} : { udpTransport }),
    answer,
    report: (what, thrown) => troubles.report(what, thrown),
    onConnectError: (code) => failures.count(code),
  });

  const beat = new Int32Array(pulse);
  setInterval(() => Atomics.add(beat, 0, 1), PULSE_MS);
  Atomics.add(beat, 0, 1);
  setInterval(() => {
    worker.tick();
    troubles.tick();
    failures.tick();
    watchDelay.tick();
  }, TICK_MS);
  port.on('message', (orders: readonly SentOrder[]) => {
    for (const order of orders) worker.follow(order);
  });
}
