import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../clock/clock.ts';
import { formatHostPort, type HostPort } from '../config/host-port.ts';
import type { Health } from '../health.ts';
import { listenError } from '../listen-error.ts';
import { type Logger, silentLogger } from '../log.ts';
import type { Part } from '../process/start-parts.ts';
import { type AdminContent, type AdminMetrics, type AdminRoute, type Answer, answerFor, json } from './answer.ts';
import { createHttpServer } from './create-http-server.ts';

export interface AdminServerOptions extends HostPort {
  readonly health: Health;
  readonly metrics: AdminMetrics;
  readonly routes?: Readonly<Record<string, AdminRoute>>;
  readonly log?: Logger;
  readonly clock?: Clock;
  /** For the message when the port is taken: what to do about it. */
  readonly advice?: string;
}

export interface AdminServer extends Part {
  /** Where it listens, with the real port; only between start and close. */
  address(): HostPort;
}

/** Nobody asks more of it than a scraper, two probes and a person; a flood must not cost the process its descriptors. */
const MAX_CONNECTIONS = 256;
const TIMEOUTS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 15_000,
  connectionsCheckingInterval: 5_000,
};
/** How long an answer under way may take when the server closes. */
const LAST_ANSWERS_MS = 1_000;

/** Read-only HTTP for probes, Prometheus and people: /healthz, /readyz, /metrics and the given routes as JSON. */
export function createAdminServer(options: AdminServerOptions): AdminServer {
  const { health, metrics, routes = {}, log = silentLogger(), clock = systemClock } = options;
  const content: AdminContent = { health, metrics, log, routes };
  const server = createHttpServer(
    { ...TIMEOUTS, maxHeaderSize: 16_384 },
    (request, response) => void respond(request, response, content),
  );
  server.maxConnections = MAX_CONNECTIONS;
  return {
    name: 'admin',
    start: () => listen(server, options),
    close: () => close(server, clock),
    address: () => {
      const { address, port } = server.address() as AddressInfo;
      return { host: address, port };
    },
  };
}

async function respond(request: IncomingMessage, response: ServerResponse, content: AdminContent): Promise<void> {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const answer: Answer = isRead
    ? await answerFor(request.url ?? '', content)
    : json(405, { error: 'only GET is answered here' });
  response.writeHead(answer.status, {
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // A body that nobody reads would be taken for the next request.
    ...(isRead ? {} : { allow: 'GET, HEAD', connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
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

/** Idle keep-alive connections end now, those in use after their answer, or after a second. */
async function close(server: Server, clock: Clock): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const deadline = clock.setTimeout(() => server.closeAllConnections(), LAST_ANSWERS_MS);
  await closed;
  deadline.cancel();
}
