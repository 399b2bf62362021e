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
import { aggregatedRoutes, toConsolePath } from './aggregation/aggregated-routes.ts';
import { handleErrors, validationError } from './api/error-responses.ts';
import { currentUserRoute, fleetRoutes } from './api/fleet-routes.ts';
import { liveRoutes } from './api/live-routes.ts';
import { monitoringRoutes } from './api/monitoring-routes.ts';
import type { RouteContext } from './api/route-context.ts';
import { openApiOptionsFor } from './api/schemas.ts';
import { serviceRoutes } from './api/service-routes.ts';
import { suspensionRoutes } from './api/suspension-routes.ts';
import { tenantRoutes } from './api/tenant-routes.ts';
import { FleetWatch } from './fleet/fleet-watch.ts';
import { createConsoleServer, OpenSockets, type TlsOptions } from './http-server.ts';
import { RateSampler } from './rates/rate-sampler.ts';
import type { SuspensionWriter } from './suspensions/suspension-writer.ts';

export interface ConsoleOptions {
  readonly store: Store;
  /** The name of the fleet. */
  readonly fleet: string;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly suspensions: SuspensionWriter;
  readonly auth: ConsoleAuth;
  /** Directory of `tls.crt` and `tls.key`; absent: HTTP. */
  readonly tls?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export type ConsoleAuth =
  /** Nobody is asked who they are: only for an address that this machine alone can reach. */
  | { readonly kind: 'none' }
  /** By a token of the cluster, whose rights decide what is shown. */
  | {
      readonly kind: 'kubernetes';
      readonly kubeconfig: KubeConfig;
      /** Default, with TLS: the API server may ask for others, as it does of an aggregated API. */
      readonly isAggregated?: boolean;
    };

export interface RunningConsole {
  /** `http://127.0.0.1:8686/`, or `https:`. */
  readonly url: string;
  /** Resolves when it shows a whole table, and what the proxies say now instead of a moment ago. */
  refresh(): Promise<void>;
  /** Rejects when the console cannot go on. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

/** Of IPv4, too. Where the kernel has no IPv6 Node takes those of IPv4 alone, but only when it is told no address at all. */
const ANY_ADDRESS = '::';

const LISTENING_MESSAGES: Readonly<Record<ConsoleAuth['kind'], string>> = {
  none: 'the console listens; on this loopback address it asks for no token',
  kubernetes: 'the console listens; it asks for a Kubernetes token',
};

const PLAINTEXT_TOKEN_WARNING =
  'tokens cross the network in the clear as far as nothing in front ends TLS; set WEIR_CONSOLE_TLS to a directory of tls.crt and tls.key';

/** Listens and answers; rejects with a `UsageError` when it may not, or cannot, listen there. */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { store, fleet, host, port, suspensions, auth, tls, clock, log } = options;
  const isLocal = isLoopback(host);
  if (auth.kind === 'none' && !isLocal) {
    throw new UsageError(
      `the console asks for no token and may therefore not listen on ${host}, which others can reach; set WEIR_CONSOLE_AUTH=kubernetes, or use a loopback address such as 127.0.0.1:8686, and \`ssh -L\` or \`kubectl port-forward\` from elsewhere`,
    );
  }
  const keyPair = tls === undefined ? undefined : new CertificateReloader(tls, log);
  const signIn =
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
  const parts = { fleet, store, watch, sampler, suspensions, authenticator: signIn, clock, log };
  let app: FastifyInstance | undefined;
  const close = async (): Promise<void> => {
    await sampler.close();
    await app?.close();
    await watch.close();
    await signIn.close();
  };
  try {
    app = createApp(parts, keyPair && { keyPair, frontProxy: signIn.frontProxy, openSockets: new OpenSockets() });
    await app.listen({ host: host === ANY_ADDRESS ? '' : host, port });
  } catch (error) {
    await close();
    if (error instanceof UsageError) throw error;
    const advice = 'choose another with --console HOST:PORT (WEIR_CONSOLE), or stop the other program';
    const failed = listenError(error, { address: formatHostPort({ host, port }), advice });
    throw new UsageError(`console: ${failed.message}`, { cause: error });
  }
  if (tls === undefined && !isLocal) log.warn(PLAINTEXT_TOKEN_WARNING);
  const scheme = tls === undefined ? 'http' : 'https';
  const url = `${scheme}://${formatHostPort({ host, port: portOf(app.server.address()) ?? port })}/`;
  log.info({ url }, LISTENING_MESSAGES[auth.kind]);
  return { url, refresh: () => watch.refresh(), failed: watch.failed, close };
}

function createApp(parts: RouteContext, encryption: TlsOptions | undefined): FastifyInstance {
  const app = fastify({
    serverFactory: (listener: RequestListener): Server => createConsoleServer(encryption, listener),
    rewriteUrl: ({ url = '' }) => toConsolePath(url),
    logger: false,
    bodyLimit: 64 * 1024,
    forceCloseConnections: true,
    ajv: { customOptions: { allErrors: false, verbose: true, coerceTypes: false, removeAdditional: false } },
    schemaErrorFormatter: validationError,
  });
  // Only JSON: the types that an HTML form can send would need no permission from another site.
  app.removeContentTypeParser('text/plain');
  handleErrors(app, parts.log);
  guardRoutes(app, { authenticator: parts.authenticator, scheme: encryption === undefined ? 'http' : 'https' });
  app.register(swagger, { openapi: openApiOptionsFor(parts.authenticator) });
  app.register(async (routes) => {
    serviceRoutes(routes, parts);
    tenantRoutes(routes, parts);
    fleetRoutes(routes, parts);
    suspensionRoutes(routes, parts);
    liveRoutes(routes, parts);
    monitoringRoutes(routes, parts);
    currentUserRoute(routes, parts);
    aggregatedRoutes(routes);
  });
  servePage(app);
  if (encryption !== undefined) {
    // A plugin, and the last: its turn comes when those before it have ended their streams.
    app.register(async (last) => {
      last.addHook('preClose', async () => encryption.openSockets.close());
    });
  }
  return app;
}

function portOf(address: AddressInfo | string | null): number | undefined {
  return typeof address === 'object' ? address?.port : undefined;
}

/** Both from `src/` and from `dist/src/`. */
const PAGE_DIRECTORY = fileURLToPath(
  new URL(import.meta.url.includes('/dist/') ? '../../page' : '../page', import.meta.url),
);

/** Only what is served here runs or loads: text of tenants (names, messages) must never become code. */
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
      route.config = { ...route.config, access: 'anybody' };
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
