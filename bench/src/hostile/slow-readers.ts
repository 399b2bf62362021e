// A tenant whose clients download endless streams, read the first bytes, and then stop reading. Another tenant downloads one stream on the same
// worker.
import { setTimeout } from 'node:timers/promises';
import { freePort } from '@weir/testkit';
import { startBulkSource } from '../backends/start-backends.ts';
import { downloadBulk } from '../load/bulk-stream.ts';
import type { SlowReaders } from '../load/slow-readers-process.ts';
import { descriptorLimit, maxIdleConnections, residentKiB } from '../measure/proc-stats.ts';
import { socketMemoryOf } from '../measure/socket-memory.ts';
import { summarize } from '../measure/statistics.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { BoundedValue } from './hostile-result.ts';
import type { Attacker } from './scenarios.ts';

/** How much each client reads before it stops. */
const BYTES_TO_READ = 64_000;
const DOWNLOAD_BYTES = 300_000_000;
const DOWNLOADS = 7;
/** The send buffers of the hostile endpoint are small, because all sockets of the machine share the kernel's memory for TCP. */
const SOURCE_BUFFER_BYTES = 16_384;
/** So few that a call does not reach its time limit. */
const READERS_PER_CALL = 500;
/** Time for the buffers to fill. */
const SETTLE_MS = 3_000;
const MIB = 1024 ** 2;
const MAX_MEMORY_MIB = 256;
const MIN_RATE_SHARE = 0.8;

export async function startSlowReaders(): Promise<Attacker> {
  await using cleanup = new AsyncDisposableStack();
  const [calmSource, hostileSource] = [
    cleanup.use(await startBulkSource()),
    cleanup.use(await startBulkSource(SOURCE_BUFFER_BYTES)),
  ];
  const [calmPort, hostilePort] = [await freePort(), await freePort()];
  const program = new URL('../load/slow-readers-process.ts', import.meta.url);
  const readers = cleanup.use(new RpcProcess<SlowReaders>(program, []));
  let report = '';
  let bounded: BoundedValue[] = [];
  const started = cleanup.move();
  return {
    manifests: [
      serviceManifest(
        { name: 'stream', namespace: 'calm', protocol: 'TCP', port: calmPort },
        { target: calmSource.port, addresses: ['127.0.0.1'] },
      ),
      serviceManifest(
        { name: 'stream', namespace: 'hostile', protocol: 'TCP', port: hostilePort },
        { target: hostileSource.port, addresses: ['127.0.0.1'] },
      ),
    ].join('---\n'),
    async arm(pid) {
      const quietRate = await downloadRate(calmPort);
      const memory = (): number => residentKiB(pid) / 1024 + socketMemoryOf(pid) / MIB;
      const [memoryBefore, kernelBefore] = [memory(), socketMemoryOf(pid)];
      for (let left = maxIdleConnections(descriptorLimit()); left > 0; left -= READERS_PER_CALL)
        await readers.call('open', hostilePort, Math.min(left, READERS_PER_CALL), BYTES_TO_READ);
      await setTimeout(SETTLE_MS);
      const [memoryMiB, kernelMiB] = [memory() - memoryBefore, (socketMemoryOf(pid) - kernelBefore) / MIB];
      const share = (await downloadRate(calmPort)) / quietRate;
      const count = await readers.call('count');
      report = `${count} slow readers take ${memoryMiB.toFixed(0)} MiB, of which the kernel's buffers are ${kernelMiB.toFixed(0)} MiB; the other tenant's stream has ${(share * 100).toFixed(0)} % of its rate`;
      bounded = [
        { value: memoryMiB, max: MAX_MEMORY_MIB, miss: `more than ${MAX_MEMORY_MIB} MiB` },
        { value: share, min: MIN_RATE_SHARE, miss: `less than ${MIN_RATE_SHARE * 100} % of the rate` },
      ];
    },
    async attack(seconds) {
      await setTimeout(seconds * 1000);
      return report;
    },
    bounded: () => bounded,
    disarm: () => readers.call('close'),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Returns the median rate of several downloads, in bytes per second. */
async function downloadRate(port: number): Promise<number> {
  const rates: number[] = [];
  while (rates.length < DOWNLOADS) rates.push((DOWNLOAD_BYTES / (await downloadBulk(port, DOWNLOAD_BYTES)).ms) * 1000);
  return summarize(rates).median;
}
