import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorMessage } from '../errors.ts';
import type { Health, HealthReport } from '../health.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics/contract.ts';

/** Returns the value that a GET of the route's path responds with, as JSON. */
export type AdminRoute = (query: URLSearchParams) => unknown;
/** Writes a response that lasts until its client or this process ends it, or returns an error instead. */
export type AdminStream = (query: URLSearchParams, response: ServerResponse) => AdminResponse | undefined;
/** The metrics, or a function that creates them at each scrape. */
export type AdminMetrics = Metrics | (() => Promise<Metrics>);

export interface AdminContent {
  readonly health: Health;
  /** Undefined if this server has no /metrics. */
  readonly metrics: AdminMetrics | undefined;
  readonly log: Logger;
  /** Routes by path, such as `/connections`. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
  /** Endless responses by path. */
  readonly streams?: Readonly<Record<string, AdminStream>>;
}

export interface AdminResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * What a request may read. `probes` permits only the liveness and readiness of the process, without reasons, because
 * reasons may name tenants.
 */
export type AdminAccess = 'all' | 'probes';
const PROBE_PATHS = ['/healthz', '/readyz'];
const METRICS_PATH = '/metrics';

/** Returns the response to a GET of `target` (path and query). Never throws. */
export async function responseFor(target: string, content: AdminContent, access: AdminAccess): Promise<AdminResponse> {
  if (!target.startsWith('/')) return jsonResponse(400, { error: 'invalid request target: expected a path' });
  const { pathname, searchParams } = new URL(`http://admin${target}`);
  if (access === 'probes' && !PROBE_PATHS.includes(pathname))
    return jsonResponse(401, { error: 'missing or wrong admin token; send "Authorization: Bearer TOKEN"' });
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
  { metrics, routes, streams = {} }: AdminContent,
): Promise<AdminResponse> {
  if (path === METRICS_PATH && metrics !== undefined) {
    const current = typeof metrics === 'function' ? await metrics() : metrics;
    return { status: 200, contentType: current.contentType, body: await current.render() };
  }
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (route !== undefined) return jsonResponse(200, await route(query));
  const extra = [...Object.keys(routes), ...Object.keys(streams)];
  const paths = [...PROBE_PATHS, ...(metrics === undefined ? [] : [METRICS_PATH]), ...extra];
  return jsonResponse(404, { error: `unknown path ${path}`, paths });
}

export function jsonResponse(status: number, value: unknown): AdminResponse {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(value ?? null)}\n` };
}

/** Responds to one request. An untrusted request gets only the liveness and readiness of the process. */
export async function handleAdminRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { content, isTrusted }: { readonly content: AdminContent; readonly isTrusted: boolean },
): Promise<void> {
  const { method, url = '' } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  const streamed = isTrusted && method === 'GET' ? startStream(url, response, content) : undefined;
  if (streamed === 'started') return;
  const { status, contentType, body }: AdminResponse =
    streamed ??
    (isRead
      ? await responseFor(url, content, isTrusted ? 'all' : 'probes')
      : jsonResponse(405, { error: 'method not allowed; use GET' }));
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 401 ? { 'www-authenticate': 'Bearer realm="weir"' } : {}),
    // Closes the connection if the method is neither GET nor HEAD, because a request body is not read and would be parsed as the next
    // request.
    ...(isRead ? {} : { allow: 'GET, HEAD', connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Starts the endless response to a GET of `target`. Returns undefined if the path has none. */
function startStream(
  target: string,
  response: ServerResponse,
  { streams = {} }: AdminContent,
): AdminResponse | 'started' | undefined {
  if (!target.startsWith('/')) return undefined;
  const { pathname, searchParams } = new URL(`http://admin${target}`);
  if (!Object.hasOwn(streams, pathname)) return undefined;
  return streams[pathname]?.(searchParams, response) ?? 'started';
}
