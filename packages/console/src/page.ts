import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

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
