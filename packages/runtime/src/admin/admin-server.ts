import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Clock, systemClock } from '../clock/clock.ts';
import { formatHostPort, type HostPort } from '../config/host-port.ts';
import type { Health } from '../health.ts';
import { listenError } from '../listen-error.ts';
import { type Logger, silentLogger } from '../log.ts';
import type { Part } from '../process/start-parts.ts';
import type { Secret } from '../secret.ts';
import type { AdminContent, AdminMetrics, AdminRoute } from './answer.ts';
import { limitConnections } from './bound-connections.ts';
import { closeServer, trackSockets } from './close-server.ts';
import { createHttpServer, createHttpsServer } from './create-http-server.ts';
import { exposureWarningFor } from './exposure.ts';
import { CertificateReloader } from './key-pair.ts';
import { handleAdminRequest } from './respond.ts';
import { createTokenCheck } from './token-check.ts';

export interface AdminServerOptions extends HostPort {
  readonly health: Health;
  readonly metrics: AdminMetrics;
  readonly routes?: Readonly<Record<string, AdminRoute>>;
  /** The directory of tls.crt and tls.key, which may be replaced while it runs. Absent: no TLS. */
  readonly tls?: string | undefined;
  /** Who does not send it is told no more than whether the process is live and ready. Absent: everybody is told all. */
  readonly token?: Secret | undefined;
  readonly log?: Logger;
  readonly clock?: Clock;
  /** For the message when the port is taken: what to do about it. */
  readonly advice?: string;
}

/** Unlike other parts it may be started again after it was closed. */
export interface AdminServer extends Part {
  /** Where it listens, with the real port; only between start and close. */
  address(): HostPort;
}

const HTTP_SERVER_OPTIONS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 15_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
};
const TLS_HANDSHAKE_TIMEOUT_MS = 5_000;

/** Read-only HTTP for probes, Prometheus and people: /healthz, /readyz, /metrics and the given routes as JSON. */
export function createAdminServer(options: AdminServerOptions): AdminServer {
  const { health, metrics, routes = {}, token, tls, log = silentLogger(), clock = systemClock } = options;
  const content: AdminContent = { health, metrics, log, routes };
  const isTrusted = createTokenCheck(token);
  const answer: RequestListener = (request, response) =>
    void handleAdminRequest(request, response, { content, isTrusted: isTrusted(request.headers.authorization) });
  const pair = tls === undefined ? undefined : new CertificateReloader(tls, log);
  let server: Server | undefined;
  let sockets: ReadonlySet<Socket> = new Set();
  let isWarned = false;
  const listening = (): Server => {
    if (server === undefined) throw new Error('admin does not listen');
    return server;
  };
  return {
    name: 'admin',
    async start() {
      const next = pair === undefined ? createHttpServer(HTTP_SERVER_OPTIONS, answer) : createTlsServer(pair, answer);
      limitConnections(next, clock);
      const exposure = exposureWarningFor(options);
      if (exposure !== undefined && !isWarned) log.warn({ advice: exposure.advice }, exposure.message);
      isWarned = true;
      sockets = trackSockets(next);
      await listen(next, options);
      server = next;
    },
    async close() {
      const last = listening();
      server = undefined;
      await closeServer(last, sockets, clock);
    },
    address: () => {
      const { address, port } = listening().address() as AddressInfo;
      return { host: address, port };
    },
  };
}

function createTlsServer(pair: CertificateReloader, answer: RequestListener): Server {
  const server = createHttpsServer({ ...HTTP_SERVER_OPTIONS, handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS }, answer);
  pair.applyTo(server);
  // Before the server's own listener, which begins the handshake.
  server.prependListener('connection', () => pair.reloadIfChanged(server));
  return server;
}

async function listen(
  server: Server,
  { host, port, advice = 'choose a free HOST:PORT' }: AdminServerOptions,
): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw listenError(error, { address: formatHostPort({ host, port }), advice });
  }
}
