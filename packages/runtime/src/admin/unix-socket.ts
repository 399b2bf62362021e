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
 * Serves /healthz and /readyz on a Unix socket. A probe of a TCP port could reach another proxy, because during an
 * upgrade two proxies share the host's network.
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
        throw new UsageError('failed to open the probe socket', { cause });
      });
      server.on('error', (error) => log.warn({ err: error }, 'probe socket failed'));
    },
    close: () => file?.close(),
  };
}

/**
 * The maximum length of the path. The kernel limits a socket path to 107 bytes (`sun_path`), and the temporary name may
 * be up to 13 bytes longer than the path.
 */
const MAX_PATH_BYTES = 90;

export interface UnixSocket {
  close(): Promise<void>;
}

/**
 * Makes `server` listen on a Unix socket at `path`. Replaces the socket of a crashed process or of a predecessor. Only
 * this user and root may connect. Throws `LISTEN_FAILED` if the path is too long, and `FILE_FAILED` for other failures.
 */
export async function listenOnUnixSocket(server: Server, path: string): Promise<UnixSocket> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw new WeirError('LISTEN_FAILED', `cannot listen on ${path}: use a path of at most ${MAX_PATH_BYTES} bytes`);
  // The socket has an unguessable name until its mode is set, so that other users can never connect.
  const temporary = join(dirname(path), `.${randomUUID().slice(0, 8)}.sock`);
  try {
    server.listen(temporary);
    await once(server, 'listening');
    await chmod(temporary, 0o600);
    const { ino } = await stat(temporary);
    await rename(temporary, path);
    return { close: () => closeUnixSocket(server, path, ino) };
  } catch (error) {
    server.close();
    await rm(temporary, { force: true }).catch(() => undefined); // Only `error` is reported.
    throw fileError(error, 'create', path);
  }
}

/** Removes the socket file unless a successor has replaced it. */
async function closeUnixSocket(server: Server, path: string, ino: number): Promise<void> {
  const current = await stat(path).catch(() => undefined);
  if (current?.ino === ino) await rm(path, { force: true });
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}
