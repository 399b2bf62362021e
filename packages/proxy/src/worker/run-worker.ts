// A worker thread: the pulse, the ticking clock, and orders from the main thread. Anything thrown here that is not a
// connection's own ends the worker; the main thread replaces it.
import { parentPort, workerData } from 'node:worker_threads';
import { createAffinityTable } from '@weir/model/data-plane';
import { Sealer, Secret } from '@weir/runtime/sealing';
import { descriptorLimit } from '../open-descriptors.ts';
import { LocalFailureReporter } from '../relay/local-failures.ts';
import type { TcpTransport } from '../tcp/transport.ts';
import { PeerWorkers } from '../udp/neighbours.ts';
import type { UdpTransport } from '../udp/transport.ts';
import { DescriptorLimiter } from './descriptor-room.ts';
import { startEventLoopDelayMonitor } from './event-loop-delay.ts';
import { LIVENESS_INTERVAL_MS, type SentCommand, type WorkerMessage, type WorkerStartData } from './messages.ts';
import { MessageBatcher } from './outbox.ts';
import { RelayWorker } from './relay-worker.ts';
import { ErrorReporter } from './troubles.ts';

const TICK_MS = 1_000;

export function runWorker(transport: TcpTransport, udpTransport?: UdpTransport): void {
  const port = parentPort;
  if (port === null) throw new Error('this runs only in a worker thread');
  const {
    node,
    livenessCounter,
    counterBlocks,
    affinityMemory,
    limiterMemory,
    peerWorkers,
    trustedProxies,
    fleetSecret,
    workerCount,
    eventLoopDelays,
  } = workerData as WorkerStartData;

  const outbox = new MessageBatcher<WorkerMessage>((answers) => port.postMessage(answers), setImmediate);
  const send = (said: WorkerMessage): void => outbox.add(said);
  const failures = new LocalFailureReporter((counts) => send({ kind: 'local-failures', counts }));
  const watchDelay = startEventLoopDelayMonitor(new Float64Array(eventLoopDelays));
  const troubles = new ErrorReporter((what, text) => send({ kind: 'trouble', what, text }));
  const worker = new RelayWorker({
    node,
    counterBlocks,
    trustedProxies,
    affinityTable: createAffinityTable(new Uint32Array(affinityMemory)),
    limiterMemory,
    peerWorkers: new PeerWorkers(peerWorkers),
    descriptorLimiter: new DescriptorLimiter({ limit: descriptorLimit(), workers: workerCount }),
    sealer: fleetSecret === undefined ? undefined : new Sealer(new Secret(fleetSecret)),
    transport,
    ...(udpTransport === undefined ? {} : { udpTransport }),
    send,
    reportError: (what, thrown) => troubles.report(what, thrown),
    onConnectError: (code) => failures.count(code),
  });

  const beat = new Int32Array(livenessCounter);
  setInterval(() => Atomics.add(beat, 0, 1), LIVENESS_INTERVAL_MS);
  Atomics.add(beat, 0, 1);
  setInterval(() => {
    worker.tick();
    troubles.tick();
    failures.tick();
    watchDelay.tick();
  }, TICK_MS);
  port.on('message', (orders: readonly SentCommand[]) => {
    for (const order of orders) worker.apply(order);
  });
}
