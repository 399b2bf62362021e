// Terminates workers that are busy with TLS handshakes: one after the other, or all of them at the exit of the process. A program of its
// own, because the process may abort.
//   node terminate-workers.ts guarded|unguarded|exit COUNT
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createTerminationGuard, untilTerminable, waitBeforeExit } from '../../../src/transport/termination-guard.ts';
import type { HandshakingWorkerData } from './handshaking-worker.ts';

const [mode, count] = process.argv.slice(2);
const isGuarded = mode === 'guarded';
const guards: SharedArrayBuffer[] = [];
for (let index = 0; index < Number(count); index += 1) {
  const handshakes = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const guard = createTerminationGuard();
  const workerData: HandshakingWorkerData = { handshakes, guard: mode === 'unguarded' ? undefined : guard };
  const worker = new Worker(new URL('./handshaking-worker.ts', import.meta.url), { workerData });
  const ended = once(worker, 'exit');
  // Each worker is terminated after a different number of handshakes.
  const done = new Int32Array(handshakes);
  for (let seen = 0; seen <= index % 10; seen = Atomics.load(done, 0)) await Atomics.waitAsync(done, 0, seen).value;
  if (mode === 'exit') {
    guards.push(guard);
    continue;
  }
  if (isGuarded) await untilTerminable(guard);
  await worker.terminate();
  await ended;
}
waitBeforeExit(guards);
process.exit(0);
