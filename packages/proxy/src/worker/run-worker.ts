// A worker thread: the pulse, the ticking clock, and orders from the main thread. Anything thrown here that is not a
// connection's own ends the worker; the main thread replaces it.
import { parentPort, workerData } from 'node:worker_threads';
import { createAffinityMemory } from '@weir/model';
import type { Transport } from '../tcp/transport.ts';
import type { UdpTransport } from '../udp/transport.ts';
import { type Answer, type Order, PULSE_MS, type WorkerBirth } from './messages.ts';
import { RelayWorker } from './relay-worker.ts';
import { Troubles } from './troubles.ts';

const TICK_MS = 1_000;

export function runWorker(transport: Transport, udpTransport: UdpTransport): void {
  const port = parentPort;
  if (port === null) throw new Error('this runs only in a worker thread');
  const { node, pulse, slabs, affinity, limits, trustProxyProtocol } = workerData as WorkerBirth;

  const answer = (said: Answer): void => port.postMessage(said);
  const troubles = new Troubles((what, text) => answer({ kind: 'trouble', what, text }));
  const worker = new RelayWorker({
    node,
    slabs,
    trustProxyProtocol,
    memory: createAffinityMemory(new Uint32Array(affinity)),
    limits,
    transport,
    udpTransport,
    answer,
    report: (what, thrown) => troubles.report(what, thrown),
  });

  const beat = new Int32Array(pulse);
  setInterval(() => Atomics.add(beat, 0, 1), PULSE_MS);
  Atomics.add(beat, 0, 1);
  setInterval(() => {
    worker.tick();
    troubles.tick();
  }, TICK_MS);
  port.on('message', (order: Order) => worker.follow(order));
}
