// The entry point of a worker thread.
import { workerData } from 'node:worker_threads';
import { openTransports } from './transport/choose-transport.ts';
import type { WorkerStartData } from './worker/messages.ts';
import { runWorker } from './worker/run-worker.ts';

const { transport, descriptors } = workerData as WorkerStartData;
const { tcp, udp } = await openTransports(transport, descriptors);
runWorker(tcp, udp);
