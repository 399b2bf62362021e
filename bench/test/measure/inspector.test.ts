import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { collectGarbage, inspectorUrlIn } from '../../src/measure/inspector.ts';

test('garbage is collected in the main thread and in the workers', async () => {
  await using child = await inspected(
    `new (require('node:worker_threads').Worker)('setInterval(() => {}, 1e6)', { eval: true }); setInterval(() => {}, 1e6);`,
  );
  await collectGarbage(child.inspector);
});

/** Deaf to its inspector, too. */
const blocked = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)';

test('a process that does not answer is not waited for without end', async () => {
  await using child = await inspected(blocked);
  await assert.rejects(collectGarbage(child.inspector, { answerMs: 100 }), /has not answered in 100 ms/);
});

test('a process that ends meanwhile is not waited for at all', async () => {
  await using child = await inspected(blocked);
  const collecting = collectGarbage(child.inspector);
  child.process.kill('SIGKILL');
  await assert.rejects(collecting);
});

interface Inspected extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly inspector: string;
}

async function inspected(source: string): Promise<Inspected> {
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
