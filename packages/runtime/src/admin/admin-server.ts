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
import {
  type AdminContent,
  type AdminMetrics,
  type AdminRoute,
  type AdminStream,
  handleAdminRequest,
} from './admin-handler.ts';

export interface AdminServerOptions extends HostPort {
  readonly health: Health;
  readonly metrics: AdminMetrics;
  readonly routes?: Readonly<Record<string, AdminRoute>>;
  readonly streams?: Readonly<Record<string, AdminStream>>;
  /** The directory of tls.crt and tls.key. The two files may be replaced at run time. Without a directory, the server does not use TLS. */
  readonly tls?: string | undefined;
  /**
   * The token that is required for everything except the liveness and readiness of the process. Without a token, every
   * client may read everything.
   */
  readonly token?: Secret | undefined;
  readonly log?: Logger;
  readonly clock?: Clock;
  /** What the user can do if the server cannot listen, as part of the error message. */
  readonly advice?: string;
}

/** Unlike other parts, an admin server may be started again after `close`. */
export interface AdminServer extends Part {
  /** Returns the listen address with the actual port. Throws unless the server is started. */
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

/**
 * Creates a read-only HTTP server for probes, Prometheus and operators. It serves /healthz, /readyz, /metrics and the
 * given routes, which respond with JSON.
 */
export function createAdminServer(options: AdminServerOptions): AdminServer {
  const { health, metrics, routes = {}, streams = {}, token, tls, log = silentLogger(), clock = systemClock } = options;
  const content: AdminContent = { health, metrics, log, routes, streams };
  const isTrusted = createTokenCheck(token);
  const onRequest: RequestListener = (request, response) =>
    void handleAdminRequest(request, response, { content, isTrusted: isTrusted(request.headers.authorization) });
  const certificate = tls === undefined ? undefined : new CertificateReloader(tls, log);
  let server: Server | undefined;
  let sockets: ReadonlySet<Socket> = new Set();
  let isWarned = false;
  const startedServer = (): Server => {
    if (server === undefined) throw new Error('the admin server is not started');
    return server;
  };
  return {
    name: 'admin',
    async start() {
      const next =
        certificate === undefined
          ? createHttpServer(HTTP_SERVER_OPTIONS, onRequest)
          : createTlsServer(certificate, onRequest);
      limitConnections(next, clock);
      const exposure = exposureWarningFor(options);
      if (exposure !== undefined && !isWarned) log.warn({ advice: exposure.advice }, exposure.message);
      isWarned = true;
      sockets = trackSockets(next);
      await listen(next, options);
      server = next;
    },
    async close() {
      const last = startedServer();
      server = undefined;
      await closeServer(last, sockets, clock);
    },
    address: () => {
      const { address, port } = startedServer().address() as AddressInfo;
      return { host: address, port };
    },
  };
}

function createTlsServer(certificate: CertificateReloader, onRequest: RequestListener): Server {
  const server = createHttpsServer({ ...HTTP_SERVER_OPTIONS, handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS }, onRequest);
  certificate.applyTo(server);
  // This listener runs before the server's own listener, because the server's listener starts the handshake.
  server.prependListener('connection', () => certificate.reloadIfChanged(server));
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

/**
 * The maximum number of open connections. Bounds the descriptors that a flood of connections can use. The usual clients are a scraper, two
 * probes and an operator.
 */
const MAX_OPEN_CONNECTIONS = 256;
/**
 * The maximum number of new connections per second. Bounds the CPU time that a flood of TLS handshakes can take from
 * the process's main work; a handshake takes up to 1 ms.
 */
const MAX_NEW_CONNECTIONS_PER_WINDOW = 200;
const CONNECTION_WINDOW_MS = 1_000;

/** Limits the open connections of a server and its new connections per second. The server closes excess connections at once. */
export function limitConnections(server: Server, clock: Clock): void {
  let windowStart = Number.NEGATIVE_INFINITY;
  let count = 0;
  server.maxConnections = MAX_OPEN_CONNECTIONS;
  server.on('connection', () => {
    const now = clock.monotonic();
    if (now - windowStart >= CONNECTION_WINDOW_MS) {
      windowStart = now;
      count = 0;
    }
    count += 1;
    if (count < MAX_NEW_CONNECTIONS_PER_WINDOW) return;
    server.maxConnections = 0;
    clock.setTimeout(
      () => {
        server.maxConnections = MAX_OPEN_CONNECTIONS;
      },
      windowStart + CONNECTION_WINDOW_MS - now,
    );
  });
}

/** How long a response may take after `close`. After this time its connection is closed by force. */
const CLOSE_TIMEOUT_MS = 1_000;

/**
 * Returns the set of a server's open sockets. Includes sockets in a TLS handshake, which `closeAllConnections` does not
 * end.
 */
export function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

/**
 * Frees the port and ends idle connections at once. Ends other connections after their response, but after
 * `CLOSE_TIMEOUT_MS` at the latest.
 */
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
