// Serves the admin requests that change or inspect the process, on a Unix socket of mode 0600. Only the proxy's own
// user and root can open this socket.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHttpServer, errorMessage, type Logger, listenOnUnixSocket, type UnixSocket } from '@weir/runtime';
import {
  LOCAL_SUSPENSION_PATHS,
  type LocalSuspensionAccess,
  respondToLocalSuspension,
} from './local-suspension-requests.ts';

const MAX_PROFILE_SECONDS = 60;

const METHODS: Readonly<Record<string, 'GET' | 'POST'>> = {
  '/profile': 'POST',
  '/drain': 'POST',
  ...LOCAL_SUSPENSION_PATHS,
};

export interface LocalAdminOptions {
  readonly path: string;
  readonly workers: number;
  /** Takes a CPU profile of the worker. Returns undefined while the worker is being replaced. */
  profile(worker: number, durationMs: number): Promise<string> | undefined;
  /** Starts the drain, as SIGTERM does. */
  drain(): void;
  readonly suspensions: LocalSuspensionAccess;
  readonly log: Logger;
}

interface LocalAdminState extends LocalAdminOptions {
  /**
   * The workers of which a CPU profile is being taken. A second profile of the same worker is refused, because each
   * profile would include the work for the other profile.
   */
  readonly workersBeingProfiled: Set<number>;
}

interface LocalAdminResponse {
  readonly status: number;
  readonly body: string;
}

/**
 * Opens the local admin socket, even if a predecessor has a socket at the same path. Throws if the socket cannot be
 * opened.
 */
export async function openLocalAdmin(options: LocalAdminOptions): Promise<UnixSocket> {
  const { path, log } = options;
  const state: LocalAdminState = { ...options, workersBeingProfiled: new Set() };
  const server = createHttpServer((request, response) => void respond(request, response, state));
  const file = await listenOnUnixSocket(server, path);
  server.on('error', (error) => log.warn({ err: error }, 'local admin socket failed'));
  return file;
}

async function respond(request: IncomingMessage, response: ServerResponse, state: LocalAdminState): Promise<void> {
  const { status, body } = await responseFor(request, state).catch(
    (error): LocalAdminResponse => errorResponse(500, errorMessage(error)),
  );
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', connection: 'close' });
  response.end(body);
}

async function responseFor(request: IncomingMessage, state: LocalAdminState): Promise<LocalAdminResponse> {
  const target = request.url ?? '';
  // Rejects a target such as "//a/b", because a URL parser would read "a" as a host.
  const url = target.startsWith('//') ? null : URL.parse(target, 'http://local');
  if (url === null) return errorResponse(400, 'the request target is not a path');
  const { pathname, searchParams } = url;
  const method = METHODS[pathname];
  if (method === undefined)
    return errorResponse(
      404,
      `unknown path ${pathname}: expected POST /profile?worker=0&seconds=5, POST /drain, POST /suspend, POST /resume or GET /suspensions`,
    );
  if (request.method !== method) return errorResponse(405, `method not allowed: use ${method} ${pathname}`);
  if (pathname === '/profile') return profile(searchParams, state);
  if (pathname === '/drain') return drain(state);
  const outcome = await respondToLocalSuspension(pathname, searchParams, state.suspensions);
  return outcome.status === 200
    ? { status: 200, body: `${JSON.stringify(outcome.response)}\n` }
    : errorResponse(outcome.status, outcome.error);
}

function drain({ drain: begin, log }: LocalAdminOptions): LocalAdminResponse {
  log.info('draining on request from the local admin socket');
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
    return errorResponse(400, `invalid worker "${query.get('worker')}": expected an integer from 0 to ${workers - 1}`);
  if (!(seconds > 0 && seconds <= MAX_PROFILE_SECONDS))
    return errorResponse(
      400,
      `invalid seconds "${query.get('seconds')}": expected a number above 0, up to ${MAX_PROFILE_SECONDS}`,
    );
  if (workersBeingProfiled.has(worker))
    return errorResponse(409, `worker ${worker} is already being profiled; try again later`);
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
