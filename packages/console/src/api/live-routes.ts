import type { FastifyInstance } from 'fastify';
import { scopeOf } from '../access/authorization.ts';
import { visibleTenantNames } from '../access/authorization-scope.ts';
import type { RateHistory } from '../rates/rate-history.ts';
import { ApiError } from './api-error.ts';
import { type LiveHistory, liveHistoriesFor, RateEventCache } from './live-events.ts';
import { LiveWatcher, writeWithBackpressure } from './live-watcher.ts';
import type { RouteContext } from './route-context.ts';
import { optionalProperties, watchSchema } from './schemas.ts';

/** Maximum number of open live streams. Each stream costs an event per second, and more streams are a sign of leaked connections. */
const MAX_WATCHERS = 100;
/** Maximum number of open live streams of one user, so that one user's scripts cannot use up `MAX_WATCHERS`. */
const MAX_WATCHERS_PER_USER = 10;

/** Adds the route of live rates as server-sent events. A stream ends when the server closes or the user's rights change. */
export function liveRoutes(app: FastifyInstance, { watch, sampler, clock, log, authenticator }: RouteContext): void {
  const open = new Set<LiveWatcher>();
  const rateEvents = new RateEventCache({ watch, clock });
  app.addHook('preClose', async () => {
    for (const watcher of open) watcher.end();
  });

  app.get(
    '/api/v1/live',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Rates per tenant and Service once a second, as server-sent events',
        querystring: optionalProperties({ watch: watchSchema }),
        response: {
          200: {
            description:
              'one event `history` per tenant with the last two minutes, then one event `rates` per second: at, tenants, services',
            content: { 'text/event-stream': { schema: { type: 'string' } } },
          },
        },
      },
    },
    async (request, reply) => {
      const { caller } = request;
      const scope = await scopeOf(request, watch);
      refuseTooManyWatchers(caller.name === null ? undefined : caller.key);
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
          stop = sampler.watch((history) => watcher.send((scopeNow) => rateEvents.eventFor(history, scopeNow)));
        })
        .catch((error) => {
          log.warn({ err: error }, 'failed to send a live stream; closing it');
          reply.raw.destroy();
        });
    },
  );

  /**
   * Throws if too many live streams are open, in total or for one user. `key` is the key of the user, or undefined without authentication.
   */
  function refuseTooManyWatchers(key: string | undefined): void {
    if (open.size >= MAX_WATCHERS) {
      throw new ApiError(
        'TooManyWatchers',
        `all ${MAX_WATCHERS} live streams of the console are in use; close one and try again`,
      );
    }
    const watchersOfUser = key === undefined ? 0 : [...open].filter((watcher) => watcher.callerKey === key).length;
    if (watchersOfUser >= MAX_WATCHERS_PER_USER) {
      throw new ApiError(
        'TooManyWatchers',
        `you have ${MAX_WATCHERS_PER_USER} live streams open, which is the maximum; close one and try again`,
      );
    }
  }
}

/**
 * Yields `history` events with the rates before the watcher connected. The first event has no tenants, so that every stream has at least
 * one `history` event.
 */
function* historyEvents(history: RateHistory, tenants: readonly string[]): Generator<string> {
  yield `retry: 1000\n\n${historyEvent({ tenants: [] })}`;
  for (const item of liveHistoriesFor(history, tenants)) yield historyEvent(item);
}

function historyEvent(item: LiveHistory): string {
  return `event: history\ndata: ${JSON.stringify(item)}\n\n`;
}
