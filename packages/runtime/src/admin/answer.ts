import { errorMessage } from '../error-message.ts';
import type { Health } from '../health.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics/contract.ts';

/** What a GET of an extra path shows, as JSON. */
export type AdminRoute = (query: URLSearchParams) => unknown;

/** Those that are there, or a way to have them when somebody asks. */
export type AdminMetrics = Metrics | (() => Promise<Metrics>);

export interface AdminContent {
  readonly health: Health;
  readonly metrics: AdminMetrics;
  readonly log: Logger;
  /** By path, `/connections`. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
}

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

const BUILT_IN = ['/healthz', '/readyz', '/metrics'];

/** The answer to a GET of `target` (origin form: path and query). Never throws. */
export async function answerFor(target: string, content: AdminContent): Promise<Answer> {
  if (!target.startsWith('/')) return json(400, { error: 'the request target is not a path' });
  const { pathname, searchParams } = new URL(`http://admin${target}`);
  try {
    return await answerPath(pathname, searchParams, content);
  } catch (error) {
    content.log.error({ path: pathname, err: error }, 'admin request failed');
    return json(500, { error: errorMessage(error) });
  }
}

async function answerPath(
  path: string,
  query: URLSearchParams,
  { health, metrics, routes }: AdminContent,
): Promise<Answer> {
  switch (path) {
    case '/healthz': {
      const { live, reasons } = health.report();
      return json(live ? 200 : 503, { live, reasons });
    }
    case '/readyz': {
      const { ready, reasons } = health.report();
      return json(ready ? 200 : 503, { ready, reasons });
    }
    case '/metrics': {
      const there = typeof metrics === 'function' ? await metrics() : metrics;
      return { status: 200, contentType: there.contentType, body: await there.render() };
    }
    default: {
      const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
      if (route !== undefined) return json(200, await route(query));
      return json(404, { error: `nothing at ${path}`, paths: [...BUILT_IN, ...Object.keys(routes)] });
    }
  }
}

export function json(status: number, value: unknown): Answer {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(value ?? null)}\n` };
}
