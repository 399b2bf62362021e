// Runs a worker in its thread: increments the liveness counters, runs the ticks, and receives commands from the main
// thread. An error that affects more than one connection ends the thread, and the main thread starts another worker.
import { parentPort, workerData } from 'node:worker_threads';
import { createAffinityTable } from '@weir/model/data-plane';
import { Sealer, Secret } from '@weir/runtime/sealing';
import { DescriptorCounter } from '../limits/descriptor-count.ts';
import { DescriptorLimiter, descriptorLimit } from '../limits/descriptor-limit.ts';
import { PeerWorkers } from '../relay/peer-workers.ts';
import { TICK_MS } from '../relay/timeout-wheel.ts';
import { countProgressIn } from '../transport/progress.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import type { UdpTransport } from '../transport/udp-transport.ts';
import { LocalFailureReporter } from '../upstream/connect-reports.ts';
import { startEventLoopDelayMonitor } from './event-loop-delay.ts';
import {
  LIVENESS_INTERVAL_MS,
  MessageBatcher,
  PROGRESS_COUNTER,
  type SentCommand,
  TURNS_COUNTER,
  type WorkerMessage,
  type WorkerStartData,
} from './messages.ts';
import { RelayWorker } from './relay-worker.ts';

export function runWorker(transport: TcpTransport, udpTransport?: UdpTransport): void {
  const port = parentPort;
  if (port === null) throw new Error('cannot run a worker on the main thread');
  const {
    node,
    livenessCounters,
    counterBlocks,
    affinityMemory,
    limiterMemory,
    peerWorkers,
    trustedProxies,
    trustForwarded,
    writeForwarded,
    countsClients,
    fleetSecret,
    stickyKey,
    workerCount,
    eventLoopDelays,
    droppedDatagrams,
    accessLogFlag,
  } = workerData as WorkerStartData;

  const batcher = new MessageBatcher<WorkerMessage>((messages) => port.postMessage(messages), setImmediate);
  const send = (message: WorkerMessage): void => batcher.add(message);
  const localFailures = new LocalFailureReporter((counts) => send({ kind: 'local-failures', counts }));
  const eventLoopDelay = startEventLoopDelayMonitor(new Float64Array(eventLoopDelays));
  const dropped = new Float64Array(droppedDatagrams);
  const errors = new ErrorReporter((origin, text) => send({ kind: 'error', origin, text }));
  const descriptors = new DescriptorCounter(limiterMemory.memory.descriptorCounts);
  const worker = new RelayWorker({
    node,
    counterBlocks,
    trustedProxies,
    trustForwarded,
    writeForwarded,
    countsClients,
    affinityTable: createAffinityTable(new Uint32Array(affinityMemory)),
    limiterMemory,
    stickyKey,
    accessLogFlag,
    peerWorkers: new PeerWorkers(peerWorkers),
    descriptorLimiter: new DescriptorLimiter({
      limit: descriptorLimit(),
      workers: workerCount,
      countOpen: () => descriptors.open,
    }),
    sealer: fleetSecret === undefined ? undefined : new Sealer(new Secret(fleetSecret)),
    transport,
    ...(udpTransport === undefined ? {} : { udpTransport }),
    send,
    reportError: (origin, thrown) => errors.report(origin, thrown),
    onConnectError: (code) => localFailures.count(code),
    onDatagramsDropped: (count) => {
      dropped[0] = (dropped[0] as number) + count;
    },
  });

  const liveness = new Int32Array(livenessCounters);
  countProgressIn(liveness.subarray(PROGRESS_COUNTER));
  setInterval(() => Atomics.add(liveness, TURNS_COUNTER, 1), LIVENESS_INTERVAL_MS);
  Atomics.add(liveness, TURNS_COUNTER, 1);
  setInterval(() => {
    worker.tick();
    errors.tick();
    localFailures.tick();
    eventLoopDelay.tick();
  }, TICK_MS);
  port.on('message', (commands: readonly SentCommand[]) => {
    for (const command of commands) worker.apply(command);
  });
}

type ErrorOrigin = 'accept' | 'internal';
const MAX_REPORTS_PER_TICK = 5;

/**
 * Sends errors to the main thread, which logs them. Sends at most five errors per second, because a bug may affect
 * every connection.
 */
export class ErrorReporter {
  readonly #send: (origin: ErrorOrigin, text: string) => void;
  #reportsThisTick = 0;

  constructor(send: (origin: ErrorOrigin, text: string) => void) {
    this.#send = send;
  }

  report(origin: ErrorOrigin, thrown: unknown): void {
    this.#reportsThisTick += 1;
    if (this.#reportsThisTick > MAX_REPORTS_PER_TICK) return;
    this.#send(origin, thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown));
  }

  tick(): void {
    this.#reportsThisTick = 0;
  }
}
