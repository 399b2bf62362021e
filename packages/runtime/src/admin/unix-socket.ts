import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, rename, rm, stat } from 'node:fs/promises';
import type { Server } from 'node:http';
import { dirname, join } from 'node:path';
import { fileError, UsageError, WeirError } from '../errors.ts';
import type { Health } from '../health.ts';
import { createHttpServer } from '../http/create-http-server.ts';
import type { Logger } from '../log.ts';
import type { Part } from '../process/start-parts.ts';
import { type AdminContent, handleAdminRequest } from './admin-handler.ts';

export interface ProbeSocketOptions {
  readonly path: string;
  readonly health: Health;
  readonly log: Logger;
}

/**
 * /healthz and /readyz of this very process, on a Unix socket. On a port of the host another process may answer: the one that is being
 * replaced, or the one that replaces it.
 */
export function createProbeSocket({ path, health, log }: ProbeSocketOptions): Part {
  const content: AdminContent = { health, log, metrics: undefined, routes: {} };
  let file: UnixSocket | undefined;
  return {
    name: 'probe-socket',
    async start() {
      const server = createHttpServer(
        (request, response) => void handleAdminRequest(request, response, { content, isTrusted: true }),
      );
      file = await listenOnUnixSocket(server, path).catch((cause) => {
        throw new UsageError('the socket for probes cannot be opened', { cause });
      });
      server.on('error', (error) => log.warn({ err: error }, 'the socket for probes failed'));
    },
    close: () => file?.close(),
  };
}

// A server on a Unix socket that stands in the file system. What was left there by a process that crashed, or belongs to one that is being
// replaced, makes room for it.

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
