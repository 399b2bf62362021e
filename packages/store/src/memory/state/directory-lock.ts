// Two processes that keep one state directory would write over each other's ledger. An abstract Unix socket named after
// the directory is the lock: the kernel takes it back whatever happens to its holder, and no stale file is left. It is seen in
// one network namespace.
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { errorMessage } from '@weir/runtime';
import { StoreError } from '../../error.ts';

export interface DirectoryLock {
  release(): Promise<void>;
}

/** By inode, so that every name of the directory means the same. Throws DAMAGED while somebody else has it. */
export async function lockDirectory(path: string): Promise<DirectoryLock> {
  const { dev, ino } = await stat(path);
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(`\0weir/state/${dev}/${ino}`);
    await once(server, 'listening');
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const why = isTaken ? 'is in use by another process; stop that one' : `cannot be locked (${errorMessage(error)})`;
    throw new StoreError('DAMAGED', `the state directory ${path} ${why}, or choose another directory`, {
      cause: error,
    });
  }
  server.unref();
  return {
    async release() {
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}
