import type { AddressInfo } from 'node:net';
import swagger from '@fastify/swagger';
import { type Clock, formatHostPort, type Logger, listenError, UsageError } from '@weir/runtime';
import type { Store } from '@weir/store';
import fastify, { type FastifyInstance } from 'fastify';
import { ApiError } from './api/api-error.ts';
import type { ConsoleParts } from './api/console-parts.ts';
import { answerErrors } from './api/error-answers.ts';
import { fleetRoutes } from './api/fleet-routes.ts';
import { healthRoutes } from './api/health-routes.ts';
import { liveRoutes } from './api/live-routes.ts';
import { serviceRoutes } from './api/service-routes.ts';
import { suspensionRoutes } from './api/suspension-routes.ts';
import { tenantRoutes } from './api/tenant-routes.ts';
import { validationError } from './api/validation.ts';
import { FleetWatch } from './fleet/fleet-watch.ts';
import { isLoopback, refusalFor } from './guard/loopback.ts';
import { servePage } from './page.ts';
import { Sampler } from './rates/sampler.ts';
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
  readonly clock: Clock;
  readonly log: Logger;
}

/** Nobody is asked who they are: only for an address that this machine alone can reach. */
export interface ConsoleAuth {
  readonly kind: 'none';
}

export interface RunningConsole {
  /** `http://127.0.0.1:8686/` */
  readonly url: string;
  /** Resolves when it shows a whole table, and what the proxies say now instead of a moment ago. */
  refresh(): Promise<void>;
  /** Rejects when the console cannot go on. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

/** Listens and answers; rejects with a `UsageError` when it may not, or cannot, listen there. */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { store, fleet, host, port, suspensions, clock, log } = options;
  if (options.auth.kind === 'none' && !isLoopback(host)) {
    throw new UsageError(
      `the console asks for no token and may therefore not listen on ${host}, which others can reach; use a loopback address such as 127.0.0.1:8686, and \`ssh -L\` or \`kubectl port-forward\` from elsewhere`,
    );
  }
  const watch = new FleetWatch({ store, clock, log });
  const sampler = new Sampler({ store, clock, log });
  const app = appFor({ fleet, store, watch, sampler, suspensions, clock, log });
  const close = async (): Promise<void> => {
    await sampler.close();
    await app.close();
    await watch.close();
  };
  try {
    await app.listen({ host, port });
  } catch (error) {
    await close();
    const advice = 'choose another with --console HOST:PORT (WEIR_CONSOLE), or stop the other program';
    const failed = listenError(error, { address: formatHostPort({ host, port }), advice });
    throw new UsageError(`console: ${failed.message}`, { cause: error });
  }
  const url = `http://${formatHostPort({ host, port: portOf(app.server.address()) ?? port })}/`;
  log.info({ url }, 'the console listens; on this loopback address it asks for no token');
  return { url, refresh: () => watch.refresh(), failed: watch.failed, close };
}

function appFor(parts: ConsoleParts): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: 64 * 1024,
    forceCloseConnections: true,
    ajv: { customOptions: { allErrors: false, verbose: true, coerceTypes: false, removeAdditional: false } },
    schemaErrorFormatter: validationError,
  });
  // Only JSON: the types that an HTML form can send would need no permission from another site.
  app.removeContentTypeParser('text/plain');
  answerErrors(app, parts.log);
  app.addHook('onRequest', async ({ headers }) => {
    const refusal = refusalFor(headers);
    if (refusal !== undefined) throw new ApiError(refusal.code, refusal.message);
  });
  app.register(swagger, {
    openapi: { info: { title: 'Weir console', description: 'What a fleet of Weir knows and does', version: 'v1' } },
  });
  app.register(async (routes) => {
    serviceRoutes(routes, parts);
    tenantRoutes(routes, parts);
    fleetRoutes(routes, parts);
    suspensionRoutes(routes, parts);
    liveRoutes(routes, parts);
    healthRoutes(routes, parts);
  });
  servePage(app);
  return app;
}

function portOf(address: AddressInfo | string | null): number | undefined {
  return typeof address === 'object' ? address?.port : undefined;
}
