import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Clock, systemClock } from '../clock.ts';
import { formatHostPort, type HostPort } from '../config/addresses.ts';
import { listenError } from '../errors.ts';
import type { Health } from '../health.ts';
import { CertificateReloader } from '../http/certificate-reloader.ts';
import { createHttpServer, createHttpsServer } from '../http/create-http-server.ts';
import { type Logger, silentLogger } from '../log.ts';
import type { Part } from '../process/start-parts.ts';
import type { Secret } from '../secret.ts';
import { createTokenCheck, exposureWarningFor } from './admin-access.ts';
import { type AdminContent, type AdminMetrics, type AdminRoute, handleAdminRequest } from './admin-handler.ts';

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

/** Nobody asks more of it than a scraper, two probes and a person; a flood must not cost the process its descriptors. */
const MAX_OPEN_CONNECTIONS = 256;
/** New ones per second: a TLS handshake takes up to a millisecond, which the thread needs for what the process is there for. */
const MAX_NEW_CONNECTIONS_PER_WINDOW = 200;
const CONNECTION_WINDOW_MS = 1_000;

/** How many connections a server takes, at once and per second; it closes the others as soon as they are there. */
export function limitConnections(server: Server, clock: Clock): void {
  let began = Number.NEGATIVE_INFINITY;
  let count = 0;
  server.maxConnections = MAX_OPEN_CONNECTIONS;
  server.on('connection', () => {
    const now = clock.monotonic();
    if (now - began >= CONNECTION_WINDOW_MS) {
      began = now;
      count = 0;
    }
    count += 1;
    if (count < MAX_NEW_CONNECTIONS_PER_WINDOW) return;
    server.maxConnections = 0;
    clock.setTimeout(
      () => {
        server.maxConnections = MAX_OPEN_CONNECTIONS;
      },
      began + CONNECTION_WINDOW_MS - now,
    );
  });
}

/** How long an answer under way may take when the server closes. */
const CLOSE_TIMEOUT_MS = 1_000;

/** The connections of this server, those in their TLS handshake included, of which the server itself knows nothing yet. */
export function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

/** The port is free at once. Idle keep-alive connections end now, those in use after their answer, or after a second. */
export async function closeServer(server: Server, sockets: ReadonlySet<Socket>, clock: Clock): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const deadline = clock.setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, CLOSE_TIMEOUT_MS);
  await closed;
  deadline.cancel();
}
