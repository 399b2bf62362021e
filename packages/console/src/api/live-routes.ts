import type { FastifyInstance } from 'fastify';
import { sightOf } from '../access/seen.ts';
import { tenantNamesSeen } from '../access/sight.ts';
import type { RateHistory } from '../rates/history.ts';
import { type LivePast, livePast } from '../rates/live-past.ts';
import { ApiError } from './api-error.ts';
import type { ConsoleParts } from './console-parts.ts';
import { LiveTexts } from './live-texts.ts';
import { LiveWatcher } from './live-watcher.ts';
import { only, watching } from './schemas.ts';
import { sendPaced } from './send-paced.ts';

/** Each costs a frame per second; more than this is no audience but a leak somewhere. */
const MOST_WATCHERS = 100;
/** One tenant's scripts do not take the live view from all others. */
const MOST_OF_ONE = 10;

/** Server-sent events; the streams end when the server closes, or their watcher's rights do. */
export function liveRoutes(app: FastifyInstance, { watch, sampler, clock, log, signIn }: ConsoleParts): void {
  const open = new Set<LiveWatcher>();
  const texts = new LiveTexts({ watch, clock });
  app.addHook('preClose', async () => {
    for (const watcher of open) watcher.end();
  });

  app.get(
    '/api/v1/live',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Rates per tenant and Service once a second, as server-sent events',
        querystring: only({ watch: watching }),
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
      const sight = await sightOf(request, watch);
      refuseTooMany(caller.name === null ? undefined : caller.key);
      if (request.raw.socket.destroyed) return;
      reply.hijack();
      const watcher = new LiveWatcher({
        stream: reply.raw,
        key: caller.key,
        sight,
        clock,
        look: async () => sightOf({ caller: await signIn.callerOf(request.raw) }, watch),
      });
      open.add(watcher);
      let stop = (): void => {};
      reply.raw.once('close', () => {
        open.delete(watcher);
        stop();
      });
      const names = tenantNamesSeen(sight, watch.fleet().table);
      sendPaced(reply.raw, pastTexts(sampler.history, names))
        .then(() => {
          if (!watcher.isOpen) return;
          stop = sampler.watch((history) => watcher.send((now) => texts.frame(history, now)));
        })
        .catch((error) => {
          log.warn({ err: error }, 'a watcher failed');
          reply.raw.destroy();
        });
    },
  );

  /** `key` of the caller; undefined: nobody was asked who they are. */
  function refuseTooMany(key: string | undefined): void {
    if (open.size >= MOST_WATCHERS) {
      throw new ApiError('TooManyWatchers', `${MOST_WATCHERS} watchers are connected already; close one`);
    }
    const own = key === undefined ? 0 : [...open].filter((watcher) => watcher.key === key).length;
    if (own >= MOST_OF_ONE) {
      throw new ApiError('TooManyWatchers', `${MOST_OF_ONE} of your watchers are connected already; close one`);
    }
  }
}

/** Who comes later sees the graph of before. */
function* pastTexts(history: RateHistory, tenants: readonly string[]): Generator<string> {
  yield `retry: 1000\n\n${pastText({ tenants: [] })}`;
  for (const past of livePast(history, tenants)) yield pastText(past);
}

function pastText(past: LivePast): string {
  return `event: history\ndata: ${JSON.stringify(past)}\n\n`;
}
