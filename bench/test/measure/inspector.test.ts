import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { collectGarbage, inspectorUrlIn } from '../../src/measure/inspector.ts';

test('collects the garbage of the main thread and of the workers', async () => {
  await using child = await startInspected(
    `new (require('node:worker_threads').Worker)('setInterval(() => {}, 1e6)', { eval: true }); setInterval(() => {}, 1e6);`,
  );
  await collectGarbage(child.inspector);
});

/** Code that blocks the main thread, so that the inspector does not respond. */
const blocked = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)';

test('rejects after a timeout if the process does not respond', async () => {
  await using child = await startInspected(blocked);
  await assert.rejects(collectGarbage(child.inspector, { timeoutMs: 100 }), /did not respond within 100 ms/);
});

test('rejects if the process ends', async () => {
  await using child = await startInspected(blocked);
  const collecting = collectGarbage(child.inspector);
  child.process.kill('SIGKILL');
  await assert.rejects(collecting);
});

type InspectedProcess = AsyncDisposable & { readonly process: ChildProcess; readonly inspector: string };

async function startInspected(source: string): Promise<InspectedProcess> {
  const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', '-e', source], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  let inspector: string | undefined;
  for await (const line of createInterface({ input: child.stderr })) {
    inspector = inspectorUrlIn(line);
    if (inspector !== undefined) break;
  }
  assert.ok(inspector !== undefined);
  return {
    process: child,
    inspector,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
