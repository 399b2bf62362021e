import { parentPort, workerData } from 'node:worker_threads';
import { createAffinityTable } from '@weir/model/data-plane';
import { Sealer, Secret } from '@weir/runtime/sealing';
import { DescriptorLimiter, descriptorLimit } from '../limits/descriptor-limit.ts';
import { PeerWorkers } from '../relay/peer-workers.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import type { UdpTransport } from '../transport/udp-transport.ts';
import { LocalFailureReporter } from '../upstream/connect-reports.ts';
import { startEventLoopDelayMonitor } from './event-loop-delay.ts';
import {
  LIVENESS_INTERVAL_MS,
  MessageBatcher,
  type SentCommand,
  type WorkerMessage,
  type WorkerStartData,
} from './messages.ts';
import { RelayWorker } from './relay-worker.ts';

// A worker thread: the pulse, the ticking clock, and orders from the main thread. Anything thrown here that is not a
// connection's own ends the worker; the main thread replaces it.
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
  const troubles = new ErrorReporter((what, text) => send({ kind: 'error', origin: what, text }));
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

type ErrorKind = 'accept' | 'internal';
const MAX_REPORTS_PER_TICK = 5;

/** What went wrong, told to the main thread's log, but never faster than a person can read: a bug may strike every connection. */
export class ErrorReporter {
  readonly #send: (what: ErrorKind, text: string) => void;
  #reportsThisTick = 0;

  constructor(tell: (what: ErrorKind, text: string) => void) {
    this.#send = tell;
  }

  report(what: ErrorKind, thrown: unknown): void {
    this.#reportsThisTick += 1;
    if (this.#reportsThisTick > MAX_REPORTS_PER_TICK) return;
    this.#send(what, thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown));
  }

  tick(): void {
    this.#reportsThisTick = 0;
  }
}
