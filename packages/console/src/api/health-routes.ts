import type { FastifyInstance } from 'fastify';
import type { ConsoleParts } from './console-parts.ts';
import { only } from './schemas.ts';

export function healthRoutes(app: FastifyInstance, { watch }: ConsoleParts): void {
  const text = (description: string): object => ({
    querystring: only(),
    response: { 200: { description, content: { 'text/plain': { schema: { type: 'string' } } } } },
  });

  app.get('/openapi.json', { schema: { hide: true, querystring: only() } }, async () => app.swagger());

  app.get('/healthz', { schema: { summary: 'The process lives', ...text('ok') } }, async (_request, reply) =>
    reply.type('text/plain').send('ok\n'),
  );

  app.get(
    '/readyz',
    { schema: { summary: 'The table was read and the heartbeats answer', ...text('ok') } },
    async (_request, reply) => {
      const ready = watch.isReady;
      return reply
        .code(ready ? 200 : 503)
        .type('text/plain')
        .send(ready ? 'ok\n' : 'waiting for the store: no whole routing table, or no heartbeats, could be read\n');
    },
  );
}
