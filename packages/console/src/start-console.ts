import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import swagger from '@fastify/swagger';
import type { KubeConfig } from '@kubernetes/client-node';
import {
  CertificateReloader,
  type Clock,
  formatHostPort,
  isLoopback,
  type Logger,
  listenError,
  UsageError,
} from '@weir/runtime';
import type { Store } from '@weir/store';
import fastify, { type FastifyInstance } from 'fastify';
import { kubernetesAuthenticator, NO_AUTHENTICATION } from './access/authenticator.ts';
import { guardRoutes } from './access/authorization.ts';
import type { ProxyAdminAccess } from './access-log/proxy-stream.ts';
import { aggregatedRoutes, toConsolePath } from './aggregation/aggregated-routes.ts';
import { accessLogRoutes } from './api/access-log-routes.ts';
import { answerFrameworkError, handleErrors, MAX_BODY_BYTES, validationError } from './api/error-responses.ts';
import { currentUserRoute, fleetRoutes } from './api/fleet-routes.ts';
import { liveRoutes } from './api/live-routes.ts';
import { monitoringRoutes } from './api/monitoring-routes.ts';
import type { RouteContext } from './api/route-context.ts';
import { openApiOptionsFor } from './api/schemas.ts';
import { serviceRoutes } from './api/service-routes.ts';
import { suspensionRoutes } from './api/suspension-routes.ts';
import { tenantRoutes } from './api/tenant-routes.ts';
import { topClientsRoutes } from './api/top-clients-routes.ts';
import { usageSeriesRoutes } from './api/usage-series-routes.ts';
import { FleetWatch } from './fleet/fleet-watch.ts';
import { createConsoleServer, OpenSockets, type TlsOptions } from './http-server.ts';
import { RateSampler } from './rates/rate-sampler.ts';
import type { SuspensionWriter } from './suspensions/suspension-writer.ts';

export interface ConsoleOptions {
  readonly store: Store;
  /** The name of the fleet. */
  readonly fleet: string;
  readonly host: string;
  /** The port to listen on. 0 means any free port. */
  readonly port: number;
  readonly suspensionWriter: SuspensionWriter;
  readonly auth: ConsoleAuth;
  /** Directory of `tls.crt` and `tls.key`. If undefined, the console serves plain HTTP. */
  readonly tls?: string | undefined;
  /** How the console signs in to the admin servers of the proxies, which send the access logs; by default without a token. */
  readonly proxyAdmin?: ProxyAdminAccess | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export type ConsoleAuth =
  /** Requests need no authentication. Allowed only on a loopback address. */
  | { readonly kind: 'none' }
  /** Requests need a Kubernetes token. The user's rights decide what the console shows. */
  | {
      readonly kind: 'kubernetes';
      readonly kubeconfig: KubeConfig;
      /** Whether the API server may forward requests of users to the console as an aggregated API. Default: true with TLS. */
      readonly isAggregated?: boolean;
    };

export interface RunningConsole {
  /** The URL of the console, such as `http://127.0.0.1:8686/`. */
  readonly url: string;
  /** Waits for the first complete table and the first heartbeats, and then reads the heartbeats again. */
  refresh(): Promise<void>;
  /** Rejects if the console fails after the start. Never resolves. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

/**
 * The address of all IPv6 and IPv4 interfaces. `listen` gets an empty host instead, so that Node.js uses IPv4 on a machine without IPv6.
 */
const ANY_ADDRESS = '::';

const LISTENING_MESSAGES: Readonly<Record<ConsoleAuth['kind'], string>> = {
  none: 'console is listening on a loopback address; requests need no token',
  kubernetes: 'console is listening; requests need a Kubernetes token',
};

const PLAINTEXT_TOKEN_WARNING =
  'the console serves plain HTTP on a network address, so tokens can be read on the network unless a proxy in front of the console terminates TLS; set WEIR_CONSOLE_TLS to a directory that contains tls.crt and tls.key';

/**
 * Starts the console. Rejects with a `UsageError` if the console cannot listen on the address, or if requests need no authentication and
 * the address is not a loopback address.
 */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { store, fleet, host, port, suspensionWriter, auth, tls, proxyAdmin = {}, clock, log } = options;
  const isLocal = isLoopback(host);
  if (auth.kind === 'none' && !isLocal) {
    throw new UsageError(
      `the console must not listen on ${host} without authentication, because other machines can reach this address; set WEIR_CONSOLE_AUTH=kubernetes, or listen on a loopback address such as 127.0.0.1:8686 and use \`ssh -L\` or \`kubectl port-forward\` from other machines`,
    );
  }
  const keyPair = tls === undefined ? undefined : new CertificateReloader(tls, log);
  const authenticator =
    auth.kind === 'none'
      ? NO_AUTHENTICATION
      : kubernetesAuthenticator({
          kubeconfig: auth.kubeconfig,
          fleet,
          isAggregated: keyPair !== undefined && auth.isAggregated !== false,
          clock,
          log,
        });
  const watch = new FleetWatch({ store, clock, log });
  const sampler = new RateSampler({ store, clock, log });
  const context = { fleet, store, watch, sampler, suspensionWriter, authenticator, proxyAdmin, clock, log };
  let app: FastifyInstance | undefined;
  const close = async (): Promise<void> => {
    await sampler.close();
    await app?.close();
    await watch.close();
    await authenticator.close();
  };
  try {
    app = createApp(
      context,
      keyPair && { keyPair, frontProxy: authenticator.frontProxy, openSockets: new OpenSockets() },
    );
    await app.listen({ host: host === ANY_ADDRESS ? '' : host, port });
  } catch (error) {
    await close();
    if (error instanceof UsageError) throw error;
    const advice = 'choose another port with --console HOST:PORT (WEIR_CONSOLE), or stop the other program';
    const { message } = listenError(error, { address: formatHostPort({ host, port }), advice });
    throw new UsageError(`console: ${message}`, { cause: error });
  }
  if (tls === undefined && !isLocal) log.warn(PLAINTEXT_TOKEN_WARNING);
  const scheme = tls === undefined ? 'http' : 'https';
  const url = `${scheme}://${formatHostPort({ host, port: portOf(app.server.address()) ?? port })}/`;
  log.info({ url }, LISTENING_MESSAGES[auth.kind]);
  return { url, refresh: () => watch.refresh(), failed: watch.failed, close };
}

function createApp(context: RouteContext, encryption: TlsOptions | undefined): FastifyInstance {
  const app = fastify({
    serverFactory: (listener: RequestListener): Server => createConsoleServer(encryption, listener),
    rewriteUrl: ({ url = '' }) => toConsolePath(url),
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    frameworkErrors: answerFrameworkError,
    forceCloseConnections: true,
    ajv: { customOptions: { allErrors: false, verbose: true, coerceTypes: false, removeAdditional: false } },
    schemaErrorFormatter: validationError,
  });
  // Accepts only JSON: an HTML form of another site could send text/plain without a CORS preflight.
  app.removeContentTypeParser('text/plain');
  handleErrors(app, context.log);
  guardRoutes(app, { authenticator: context.authenticator, scheme: encryption === undefined ? 'http' : 'https' });
  app.register(swagger, { openapi: openApiOptionsFor(context.authenticator) });
  app.register(async (routes) => {
    serviceRoutes(routes, context);
    tenantRoutes(routes, context);
    usageSeriesRoutes(routes, context);
    fleetRoutes(routes, context);
    suspensionRoutes(routes, context);
    liveRoutes(routes, context);
    accessLogRoutes(routes, context);
    topClientsRoutes(routes, context);
    monitoringRoutes(routes, context);
    currentUserRoute(routes, context);
    aggregatedRoutes(routes);
  });
  servePage(app);
  if (encryption !== undefined) {
    // Registered last, so that this close hook runs after the live routes have ended their streams.
    app.register(async (plugin) => {
      plugin.addHook('preClose', async () => encryption.openSockets.close());
    });
  }
  return app;
}

function portOf(address: AddressInfo | string | null): number | undefined {
  return typeof address === 'object' ? address?.port : undefined;
}

/** The directory of the page. Its relative path differs between `src/` and `dist/src/`. */
const PAGE_DIRECTORY = fileURLToPath(
  new URL(import.meta.url.includes('/dist/') ? '../../page' : '../page', import.meta.url),
);

/** Allows only the console's own scripts and styles, so that text that tenants write (names, messages) never becomes code. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function servePage(app: FastifyInstance): void {
  app.addHook('onSend', async (_request, reply) => {
    reply.header('content-security-policy', CONTENT_SECURITY_POLICY);
    reply.header('x-content-type-options', 'nosniff');
    reply.header('referrer-policy', 'no-referrer');
    reply.header('cross-origin-resource-policy', 'same-origin');
  });
  app.register(async (page) => {
    page.addHook('onRoute', (route) => {
      route.config = { ...route.config, access: 'public' };
    });
    page.register(fastifyStatic, {
      root: PAGE_DIRECTORY,
      prefix: '/',
      cacheControl: true,
      maxAge: 0,
      index: 'index.html',
      schemaHide: true,
    });
  });
}
