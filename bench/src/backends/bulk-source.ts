import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import type { StartedBackend } from './nginx.ts';

const BULK_SOURCE_PROGRAM = fileURLToPath(new URL('./bulk-source-process.ts', import.meta.url));

/** In a process of its own, so that it can have the other core. */
export async function startBulkSource(): Promise<StartedBackend> {
  const source = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', BULK_SOURCE_PROGRAM],
    name: 'bulk source',
    readyWhen: /^port \d+$/m,
    mayExit: true,
  });
  const port = Number(/^port (\d+)$/m.exec(source.output())?.[1]);
  return { port, [Symbol.asyncDispose]: () => source.close() };
}
