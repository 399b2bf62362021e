import type { ServerResponse } from 'node:http';
import type { ServiceEntry } from '@weir/model';
import { wait } from '@weir/runtime';
import type { FastifyInstance } from 'fastify';
import { AccessLogFollower } from '../access-log/access-log-follower.ts';
import { findServiceEntry } from '../fleet/explanation.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import { namespaceSchema, optionalProperties, requiredProperties, serviceSchema, watchSchema } from './schemas.ts';
import { unknownServiceError } from './service-routes.ts';

/** The maximum number of open streams. Each stream has one connection to each proxy of its Service. */
const MAX_STREAMS = 50;
const MAX_STREAMS_PER_USER = 5;
/** How many bytes may wait for a client before lines are dropped. */
const MAX_UNREAD_BYTES = 1_048_576;
/** The interval at which the user's rights are checked, and at which an empty line shows that the connection works. */
const CHECK_INTERVAL_MS = 5_000;
const NEWLINE = 0x0a;

interface ServicePath {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Adds the route that follows the access log of a Service: one JSON object per line. Besides the lines of the log there
 * are empty lines, `{"dropped":N}` for lines that the client read too slowly, and `{"problem":…}` if the lines of a proxy
 * are missing. A stream ends when the console closes or the user's rights change.
 */
export function accessLogRoutes(app: FastifyInstance, context: RouteContext): void {
  const { watch, clock, authenticator, proxyAdmin } = context;
  const open = new Set<LogStream>();
  app.addHook('preClose', async () => {
    for (const stream of open) stream.end();
  });

  app.get<{ Params: ServicePath }>(
    '/api/v1/services/:namespace/:name/access-log',
    {
      config: { access: 'namespace' },
      schema: {
        summary: 'Follows the access log of a Service, as JSON lines',
        params: requiredProperties({ namespace: namespaceSchema, name: serviceSchema }),
        querystring: optionalProperties({ watch: watchSchema }),
        response: {
          200: {
            description: 'one line per request or connection, from now on',
            content: { 'application/x-ndjson': { schema: { type: 'string' } } },
          },
        },
      },
    },
    async ({ params, caller, raw }, reply) => {
      const { namespace, name } = params;
      const find = (): ServiceEntry | undefined => findServiceEntry(watch.fleet().table, namespace, name);
      const entry = find();
      if (entry === undefined) throw unknownServiceError(params);
      if (entry.settings?.accessLog === undefined) throw noAccessLogError(params);
      refuseTooManyStreams(caller.name === null ? undefined : caller.key);
      if (raw.socket.destroyed) return;
      reply.hijack();
      const stream = new LogStream(reply.raw, caller.key);
      const follower = new AccessLogFollower({
        service: `${namespace}/${name}`,
        access: proxyAdmin,
        clock,
        proxies: () => {
          const nodes = find()?.nodes ?? [];
          return watch.fleet().heartbeats.filter((heartbeat) => nodes.includes(heartbeat.node));
        },
        onLines: (lines) => stream.send(lines),
        onProblem: (node, problem) =>
          stream.note({ problem: `lines of the proxy on node ${node} are missing: ${problem}` }),
      });
      const mayStillView = async (): Promise<boolean> => {
        const current = await authenticator.authenticate(raw);
        return current.key === caller.key && (await current.canViewNamespace(namespace));
      };
      const closing = new AbortController();
      const watchStream = async (): Promise<void> => {
        while (!closing.signal.aborted) {
          await wait(clock, CHECK_INTERVAL_MS, closing.signal);
          stream.keepAlive();
          if (!(await mayStillView())) stream.end();
        }
      };
      // Ends the stream also if the user's rights cannot be checked.
      watchStream().catch(() => stream.end());
      open.add(stream);
      reply.raw.once('close', () => {
        closing.abort();
        follower.close();
        open.delete(stream);
      });
    },
  );

  /** Throws if too many streams are open, in total or for one user. `key` is undefined without authentication. */
  function refuseTooManyStreams(key: string | undefined): void {
    const ofUser = [...open].filter((stream) => stream.callerKey === key).length;
    if (open.size < MAX_STREAMS && (key === undefined || ofUser < MAX_STREAMS_PER_USER)) return;
    const whose = open.size < MAX_STREAMS ? `you follow ${MAX_STREAMS_PER_USER}` : `users follow ${MAX_STREAMS}`;
    throw new ApiError('TooManyWatchers', `${whose} access logs, which is the maximum; close one and try again`);
  }
}

function noAccessLogError({ namespace, name }: ServicePath): ApiError {
  return new ApiError(
    'NoAccessLog',
    `Service "${namespace}/${name}" has no access log; set the annotation weir.dev/access-log: "true" (or a share such as "1%")`,
  );
}

/** The response of one client. */
class LogStream {
  readonly callerKey: string;
  readonly #response: ServerResponse;
  #dropped = 0;

  constructor(response: ServerResponse, callerKey: string) {
    this.#response = response;
    this.callerKey = callerKey;
    response.on('error', () => response.destroy());
    response.writeHead(200, {
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    });
    this.keepAlive();
  }

  /** Writes lines, or drops them if the client reads too slowly. */
  send(lines: Uint8Array): void {
    if (!this.#canWrite) {
      this.#dropped += lines.filter((byte) => byte === NEWLINE).length;
      return;
    }
    if (this.#dropped > 0) this.#response.write(`{"dropped":${this.#dropped}}\n`);
    this.#dropped = 0;
    this.#response.write(lines);
  }

  note(note: { readonly problem: string }): void {
    if (this.#canWrite) this.#response.write(`${JSON.stringify(note)}\n`);
  }

  keepAlive(): void {
    if (this.#canWrite) this.#response.write('\n');
  }

  end(): void {
    this.#response.end();
  }

  get #canWrite(): boolean {
    const { destroyed, writableEnded, writableLength } = this.#response;
    return !destroyed && !writableEnded && writableLength <= MAX_UNREAD_BYTES;
  }
}
