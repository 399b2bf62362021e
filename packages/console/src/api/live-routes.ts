import type { ServerResponse } from 'node:http';
import { entriesOf } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import type { RateHistory } from '../rates/history.ts';
import { liveFrameFor } from '../rates/live-frame.ts';
import { type LivePast, livePast } from '../rates/live-past.ts';
import { ratesFor } from '../rates/rates.ts';
import { ApiError } from './api-error.ts';
import type { ConsoleParts } from './console-parts.ts';
import { only } from './schemas.ts';
import { sendPaced } from './send-paced.ts';

/** Each costs a frame per second; more than this is no audience but a leak somewhere. */
const MOST_WATCHERS = 100;

/** Server-sent events; the streams end when the server closes. */
export function liveRoutes(app: FastifyInstance, { watch, sampler, clock, log }: ConsoleParts): void {
  const open = new Set<ServerResponse>();
  app.addHook('preClose', async () => {
    for (const stream of open) stream.end();
  });

  app.get(
    '/api/v1/live',
    {
      schema: {
        summary: 'Rates per tenant and Service once a second, as server-sent events',
        querystring: only(),
        response: {
          200: {
            description:
              'first events `history`, of some tenants each, then `rates` each second: at, tenants, services',
            content: { 'text/event-stream': { schema: { type: 'string' } } },
          },
        },
      },
    },
    (_request, reply) => {
      if (open.size >= MOST_WATCHERS) {
        throw new ApiError('TooManyWatchers', `${MOST_WATCHERS} watchers are connected already; close one`);
      }
      watch.fleet();
      reply.hijack();
      const stream = reply.raw;
      stream.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', connection: 'close' });
      open.add(stream);
      let stop = (): void => {};
      stream.on('error', () => stream.destroy());
      stream.once('close', () => {
        open.delete(stream);
        stop();
      });
      sendPaced(stream, pastTexts(sampler.history))
        .then(() => {
          if (!stream.destroyed && !stream.writableEnded)
            stop = sampler.watch((history) => sendFrame(stream, frameText(history)));
        })
        .catch((error) => {
          log.warn({ err: error }, 'a watcher failed');
          stream.destroy();
        });
    },
  );

  /** Who comes later sees the graph of before. */
  function* pastTexts(history: RateHistory): Generator<string> {
    yield `retry: 1000\n\n${pastText({ tenants: [] })}`;
    for (const past of livePast(history, tenantNames())) yield pastText(past);
  }

  function tenantNames(): string[] {
    return entriesOf(watch.fleet().table, 'tenant')
      .map((entry) => entry.name)
      .sort();
  }

  /** Made once per sample, however many watch. */
  let made: { readonly history: RateHistory; readonly text: string | undefined } | undefined;
  function frameText(history: RateHistory): string | undefined {
    if (made?.history !== history) made = { history, text: textFor(history) };
    return made.text;
  }

  function textFor(history: RateHistory): string | undefined {
    const rates = ratesFor(history);
    if (rates === undefined) return undefined;
    const frame = liveFrameFor(rates, tenantNames(), watch.views());
    return `event: rates\nid: ${clock.now()}\ndata: ${JSON.stringify(frame)}\n\n`;
  }
}

function pastText(past: LivePast): string {
  return `event: history\ndata: ${JSON.stringify(past)}\n\n`;
}

/** A watcher that does not read misses frames: what waits for it stays bounded. */
function sendFrame(stream: ServerResponse, text: string | undefined): void {
  if (stream.destroyed || stream.writableEnded || stream.writableNeedDrain) return;
  stream.write(text ?? ': waiting for a second sample\n\n');
}
