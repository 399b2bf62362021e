import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorMessage } from '../errors.ts';
import type { Health, HealthReport } from '../health.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics/contract.ts';

/** What a GET of an extra path shows, as JSON. */
export type AdminRoute = (query: URLSearchParams) => unknown;
/** Those that are there, or a way to have them when somebody asks. */
export type AdminMetrics = Metrics | (() => Promise<Metrics>);

export interface AdminContent {
  readonly health: Health;
  /** Undefined: none are shown. */
  readonly metrics: AdminMetrics | undefined;
  readonly log: Logger;
  /** By path, `/connections`. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
}

export interface AdminResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What the asker may be told: of `probes` only whether the process is live and ready, as reasons may name tenants. */
export type AdminAccess = 'all' | 'probes';
const PROBE_PATHS = ['/healthz', '/readyz'];
const METRICS_PATH = '/metrics';

/** The answer to a GET of `target` (origin form: path and query). Never throws. */
export async function responseFor(target: string, content: AdminContent, access: AdminAccess): Promise<AdminResponse> {
  if (!target.startsWith('/')) return jsonResponse(400, { error: 'the request target is not a path' });
  const { pathname, searchParams } = new URL(`http://admin${target}`);
  if (access === 'probes' && !PROBE_PATHS.includes(pathname))
    return jsonResponse(401, { error: 'send the token of admin: Authorization: Bearer TOKEN' });
  try {
    return PROBE_PATHS.includes(pathname)
      ? probeResponse(pathname, content.health.report(), access)
      : await responseForPath(pathname, searchParams, content);
  } catch (error) {
    content.log.error({ path: pathname, err: error }, 'admin request failed');
    return jsonResponse(500, { error: errorMessage(error) });
  }
}

function probeResponse(path: string, { live, ready, reasons: all }: HealthReport, access: AdminAccess): AdminResponse {
  const reasons = access === 'all' ? all : all.map(({ check, affects }) => ({ check, affects }));
  return path === '/healthz'
    ? jsonResponse(live ? 200 : 503, { live, reasons })
    : jsonResponse(ready ? 200 : 503, { ready, reasons });
}

async function responseForPath(
  path: string,
  query: URLSearchParams,
  { metrics, routes }: AdminContent,
): Promise<AdminResponse> {
  if (path === METRICS_PATH && metrics !== undefined) {
    const there = typeof metrics === 'function' ? await metrics() : metrics;
    return { status: 200, contentType: there.contentType, body: await there.render() };
  }
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (route !== undefined) return jsonResponse(200, await route(query));
  const paths = [...PROBE_PATHS, ...(metrics === undefined ? [] : [METRICS_PATH]), ...Object.keys(routes)];
  return jsonResponse(404, { error: `nothing at ${path}`, paths });
}

export function jsonResponse(status: number, value: unknown): AdminResponse {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(value ?? null)}\n` };
}

/** Answers one request. `isTrusted`: it may be told all; else whether the process is live and ready, and no more. */
export async function handleAdminRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { content, isTrusted }: { readonly content: AdminContent; readonly isTrusted: boolean },
): Promise<void> {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const answer: AdminResponse = isRead
    ? await responseFor(request.url ?? '', content, isTrusted ? 'all' : 'probes')
    : jsonResponse(405, { error: 'only GET is answered here' });
  response.writeHead(answer.status, {
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(answer.status === 401 ? { 'www-authenticate': 'Bearer realm="weir"' } : {}),
    // A body that nobody reads would be taken for the next request.
    ...(isRead ? {} : { allow: 'GET, HEAD', connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}
