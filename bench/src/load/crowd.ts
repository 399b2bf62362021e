import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

const IDLE_CONNECTIONS_PROGRAM = fileURLToPath(new URL('./crowd-process.ts', import.meta.url));

/** Returns when all connections are open and idle; closing it closes them. */
export function openIdleConnections(port: number, connections: number): Promise<AsyncDisposable> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', IDLE_CONNECTIONS_PROGRAM, String(port), String(connections)],
    name: 'crowd',
    readyWhen: /^open$/m,
    readyTimeoutMs: 60_000,
    mayExit: true,
  });
}
