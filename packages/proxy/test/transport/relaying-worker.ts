// A worker that relays TCP to an endpoint until it is terminated. Posts the address and the port.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { Endpoint } from '@weir/model';
import { openTransports } from '../../src/transport/choose-transport.ts';
import { webService } from '../fixtures/services.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

if (!isMainThread) {
  const { descriptors, endpoint } = workerData as { descriptors: SharedArrayBuffer; endpoint: Endpoint };
  const { tcp } = await openTransports({ transport: 'syscalls', descriptors });
  const { host, port } = await startWorkerInTest(webService([endpoint]), { transport: tcp });
  parentPort?.postMessage({ host, port });
}
