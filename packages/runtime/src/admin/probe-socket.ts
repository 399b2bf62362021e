import type { Health } from '../health.ts';
import type { Logger } from '../log.ts';
import type { Part } from '../process/start-parts.ts';
import { UsageError } from '../weir-error.ts';
import type { AdminContent } from './answer.ts';
import { createHttpServer } from './create-http-server.ts';
import { handleAdminRequest } from './respond.ts';
import { listenOnUnixSocket, type UnixSocket } from './socket-file.ts';

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
