// The entry point of a worker thread.
import { workerData } from 'node:worker_threads';
import { shareDescriptorCount } from './limits/descriptor-count.ts';
import { openTransports } from './transport/choose-transport.ts';
import { shareTerminationGuard } from './transport/termination-guard.ts';
import type { WorkerStartData } from './worker/messages.ts';
import { runWorker } from './worker/run-worker.ts';

const { transport, tls, descriptors, terminationGuard, limiterMemory } = workerData as WorkerStartData;
shareDescriptorCount(limiterMemory.memory.descriptorCounts, limiterMemory.workerSlot);
shareTerminationGuard(terminationGuard);
const { tcp, udp } = await openTransports({ transport, tls, descriptors });
runWorker(tcp, udp);
