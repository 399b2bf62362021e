import type { FastifyInstance } from 'fastify';
import { scopeOf } from '../access/authorization.ts';
import { visibleTenantNames } from '../access/authorization-scope.ts';
import type { RateHistory } from '../rates/rate-history.ts';
import { ApiError } from './api-error.ts';
import { type LiveHistory, liveHistoriesFor, RateEventCache } from './live-events.ts';
import { LiveWatcher, writeWithBackpressure } from './live-watcher.ts';
import type { RouteContext } from './route-context.ts';
import { optionalProperties, watchSchema } from './schemas.ts';

/** Each costs a frame per second; more than this is no audience but a leak somewhere. */
const MAX_WATCHERS = 100;
/** One tenant's scripts do not take the live view from all others. */
const MAX_WATCHERS_PER_USER = 10;

/** Server-sent events; the streams end when the server closes, or their watcher's rights do. */
export function liveRoutes(app: FastifyInstance, { watch, sampler, clock, log, authenticator }: RouteContext): void {
  const open = new Set<LiveWatcher>();
  const texts = new RateEventCache({ watch, clock });
  app.addHook('preClose', async () => {
    for (const watcher of open) watcher.end();
  });

  app.get(
    '/api/v1/live',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Rates per tenant and Service once a second, as server-sent events',
        querystring: optionalProperties({ watch: watchSchema }),
        response: {
          200: {
            description:
              'first events `history`, of some tenants each, then `rates` each second: at, tenants, services',
            content: { 'text/event-stream': { schema: { type: 'string' } } },
          },
        },
      },
    },
    async (request, reply) => {
      const { caller } = request;
      const scope = await scopeOf(request, watch);
      refuseTooMany(caller.name === null ? undefined : caller.key);
      if (request.raw.socket.destroyed) return;
      reply.hijack();
      const watcher = new LiveWatcher({
        stream: reply.raw,
        callerKey: caller.key,
        scope,
        clock,
        currentScope: async () => scopeOf({ caller: await authenticator.authenticate(request.raw) }, watch),
      });
      open.add(watcher);
      let stop = (): void => {};
      reply.raw.once('close', () => {
        open.delete(watcher);
        stop();
      });
      const names = visibleTenantNames(scope, watch.fleet().table);
      writeWithBackpressure(reply.raw, historyEvents(sampler.history, names))
        .then(() => {
          if (!watcher.isOpen) return;
          stop = sampler.watch((history) => watcher.send((now) => texts.eventFor(history, now)));
        })
        .catch((error) => {
          log.warn({ err: error }, 'a watcher failed');
          reply.raw.destroy();
        });
    },
  );

  /** `key` of the caller; undefined: nobody was asked who they are. */
  function refuseTooMany(key: string | undefined): void {
    if (open.size >= MAX_WATCHERS) {
      throw new ApiError('TooManyWatchers', `${MAX_WATCHERS} watchers are connected already; close one`);
    }
    const own = key === undefined ? 0 : [...open].filter((watcher) => watcher.callerKey === key).length;
    if (own >= MAX_WATCHERS_PER_USER) {
      throw new ApiError(
        'TooManyWatchers',
        `${MAX_WATCHERS_PER_USER} of your watchers are connected already; close one`,
      );
    }
  }
}

/** Who comes later sees the graph of before. */
function* historyEvents(history: RateHistory, tenants: readonly string[]): Generator<string> {
  yield `retry: 1000\n\n${historyEvent({ tenants: [] })}`;
  for (const past of liveHistoriesFor(history, tenants)) yield historyEvent(past);
}

function historyEvent(past: LiveHistory): string {
  return `event: history\ndata: ${JSON.stringify(past)}\n\n`;
}
