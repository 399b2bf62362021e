import type { ServerResponse } from 'node:http';
import { entriesOf, serviceViewsFor } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import type { RateHistory } from '../rates/history.ts';
import { liveFrameFor } from '../rates/live-frame.ts';
import { pointsFor, ratesFor } from '../rates/rates.ts';
import { ApiError } from './api-error.ts';
import type { ConsoleParts } from './console-parts.ts';
import { only } from './schemas.ts';

/** Each costs a frame per second; more than this is no audience but a leak somewhere. */
const MOST_WATCHERS = 100;

/** What a small graph shows. */
const GRAPH_SECONDS = 120;

/** Server-sent events; the streams end when the server closes. */
export function liveRoutes(app: FastifyInstance, { watch, sampler, clock }: ConsoleParts): void {
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
            description: 'first an event `history`, then `rates` each second: at, tenants, services',
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
      stream.write(`retry: 1000\n\n${historyText(sampler.history)}`);
      open.add(stream);
      const stop = sampler.watch((history) => sendFrame(stream, frameText(history)));
      stream.on('error', () => stream.destroy());
      stream.once('close', () => {
        open.delete(stream);
        stop();
      });
    },
  );

  /** Who comes later sees the graph of before. */
  function historyText(history: RateHistory): string {
    const tenants = tenantNames().map((name) => ({
      name,
      points: pointsFor(history, { kind: 'tenant', id: name }).slice(-GRAPH_SECONDS),
    }));
    return `event: history\ndata: ${JSON.stringify({ tenants })}\n\n`;
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
    const frame = liveFrameFor(rates, tenantNames(), serviceViewsFor(watch.fleet()));
    return `event: rates\nid: ${clock.now()}\ndata: ${JSON.stringify(frame)}\n\n`;
  }
}

/** A watcher that does not read misses frames: what waits for it stays bounded. */
function sendFrame(stream: ServerResponse, text: string | undefined): void {
  if (stream.destroyed || stream.writableNeedDrain) return;
  stream.write(text ?? ': waiting for a second sample\n\n');
}
