// A server on a Unix socket that stands in the file system. What was left there by a process that crashed, or belongs to one that is being
// replaced, makes room for it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, rename, rm, stat } from 'node:fs/promises';
import type { Server } from 'node:http';
import { dirname, join } from 'node:path';
import { fileError } from '../file-error.ts';
import { WeirError } from '../weir-error.ts';

/** The kernel takes 107 bytes (`sun_path`), of the draft's name too. */
const MAX_PATH_BYTES = 90;

export interface UnixSocket {
  close(): Promise<void>;
}

/** Only this user and root may open it. Throws when it cannot listen there. */
export async function listenOnUnixSocket(server: Server, path: string): Promise<UnixSocket> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw new WeirError('LISTEN_FAILED', `cannot listen on ${path}: use a path of at most ${MAX_PATH_BYTES} bytes`);
  // Under a name that nobody knows until it is closed to others; what bears the right name then is always complete.
  const draft = join(dirname(path), `.${randomUUID().slice(0, 8)}.sock`);
  try {
    server.listen(draft);
    await once(server, 'listening');
    await chmod(draft, 0o600);
    const { ino } = await stat(draft);
    await rename(draft, path);
    return { close: () => closeUnixSocket(server, path, ino) };
  } catch (error) {
    server.close();
    await rm(draft, { force: true }).catch(() => undefined); // The reason is the first error.
    throw fileError(error, 'create', path);
  }
}

/** A successor's socket at the same path stays. */
async function closeUnixSocket(server: Server, path: string, ino: number): Promise<void> {
  const now = await stat(path).catch(() => undefined);
  if (now?.ino === ino) await rm(path, { force: true });
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}
