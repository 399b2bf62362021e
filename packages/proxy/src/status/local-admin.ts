// What may change a proxy, or look into it, is answered on a Unix socket only: whoever may open it (mode 0600) is the
// proxy's own user or root.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHttpServer, errorMessage, type Logger, listenOnUnixSocket, type UnixSocket } from '@weir/runtime';

const MAX_PROFILE_SECONDS = 60;

export interface LocalAdminOptions {
  readonly path: string;
  readonly workers: number;
  /** A CPU profile of a worker; undefined: there is none at this seat now. */
  profile(worker: number, durationMs: number): Promise<string> | undefined;
  /** Ends the proxy in good order, as SIGTERM does. */
  drain(): void;
  readonly log: Logger;
}

interface LocalAdminState extends LocalAdminOptions {
  /** Workers of which a profile is being taken: one at a time, or several would measure each other. */
  readonly workersBeingProfiled: Set<number>;
}

interface LocalAdminResponse {
  readonly status: number;
  readonly body: string;
}

/** Takes the path over from a proxy that is being replaced. Throws when it cannot listen there. */
export async function openLocalAdmin(options: LocalAdminOptions): Promise<UnixSocket> {
  const { path, log } = options;
  const content: LocalAdminState = { ...options, workersBeingProfiled: new Set() };
  const server = createHttpServer((request, response) => void respond(request, response, content));
  const file = await listenOnUnixSocket(server, path);
  server.on('error', (error) => log.warn({ err: error }, 'the local admin socket failed'));
  return file;
}

async function respond(request: IncomingMessage, response: ServerResponse, content: LocalAdminState): Promise<void> {
  const { status, body } = await responseFor(request, content).catch(
    (error): LocalAdminResponse => errorResponse(500, errorMessage(error)),
  );
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', connection: 'close' });
  response.end(body);
}

async function responseFor(request: IncomingMessage, content: LocalAdminState): Promise<LocalAdminResponse> {
  const target = request.url ?? '';
  // What begins with // would name a host.
  const url = target.startsWith('//') ? null : URL.parse(target, 'http://local');
  if (url === null) return errorResponse(400, 'the request target is not a path');
  const { pathname, searchParams } = url;
  if (pathname !== '/profile' && pathname !== '/drain')
    return errorResponse(404, `nothing at ${pathname}; POST /profile?worker=0&seconds=5 or POST /drain`);
  if (request.method !== 'POST') return errorResponse(405, `POST ${pathname}`);
  return pathname === '/profile' ? profile(searchParams, content) : drain(content);
}

function drain({ drain: begin, log }: LocalAdminOptions): LocalAdminResponse {
  log.info('a drain was asked for on the local admin socket');
  begin();
  return { status: 202, body: '{"draining":true}\n' };
}

async function profile(
  query: URLSearchParams,
  { workers, workersBeingProfiled, profile: take }: LocalAdminState,
): Promise<LocalAdminResponse> {
  const worker = Number(query.get('worker') ?? 0);
  const seconds = Number(query.get('seconds') ?? 5);
  if (!Number.isInteger(worker) || worker < 0 || worker >= workers)
    return errorResponse(400, `worker is ${query.get('worker')}; use an integer from 0 to ${workers - 1}`);
  if (!(seconds > 0 && seconds <= MAX_PROFILE_SECONDS))
    return errorResponse(400, `seconds is ${query.get('seconds')}; use a number above 0, up to ${MAX_PROFILE_SECONDS}`);
  if (workersBeingProfiled.has(worker))
    return errorResponse(409, `worker ${worker} is being profiled; try again when that is over`);
  workersBeingProfiled.add(worker);
  try {
    const body = await take(worker, seconds * 1_000);
    return body === undefined
      ? errorResponse(503, `worker ${worker} is being replaced; try again`)
      : { status: 200, body };
  } finally {
    workersBeingProfiled.delete(worker);
  }
}

function errorResponse(status: number, error: string): LocalAdminResponse {
  return { status, body: `${JSON.stringify({ error })}\n` };
}
