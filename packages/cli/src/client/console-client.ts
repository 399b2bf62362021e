import { errorMessage, WeirError } from '@weir/runtime/command-line';
import type { ConsoleRequest, ConsoleResponse, Transport } from './transport.ts';

export type ConsoleErrorCode =
  /** No server answers at the address. */
  | 'NO_CONSOLE'
  /** The console does not know the requested object. */
  | 'NOT_FOUND'
  /** The console refused the request, or the server is not a console. */
  | 'REFUSED';

export class ConsoleError extends WeirError<ConsoleErrorCode> {
  /** The `error.code` of the response body, or empty if the body has no `error.code`. */
  readonly reason: string;

  constructor(
    code: ConsoleErrorCode,
    message: string,
    options: { readonly reason?: string; readonly cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.reason = options.reason ?? '';
  }
}

type Query = Readonly<Record<string, string | undefined>>;

const REQUEST_TIMEOUT_MS = 10_000;

/** Sends requests to the console's HTTP API. Chooses the console on the first request. */
export class ConsoleClient {
  readonly #findTransport: () => Promise<Transport>;
  #transport: Promise<Transport> | undefined;

  constructor(findTransport: () => Promise<Transport>) {
    this.#findTransport = findTransport;
  }

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.#call('GET', withQuery(path, query));
  }

  post<T>(path: string, body: unknown): Promise<T> {
    return this.#call('POST', path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.#call('DELETE', path);
  }

  /** Opens a stream that lasts until `signal` is aborted or the console closes the connection. */
  async stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const transport = await this.#getTransport();
    const response = await send(transport, { method: 'GET', path, isStream: true, signal });
    if (response.status !== 200) throw refusalError(transport, response.status, await readJson(response));
    return response.body;
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const transport = await this.#getTransport();
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const response = await send(transport, { method, path, body, isStream: false, signal });
    const json = await readJson(response);
    if (response.status < 200 || response.status > 299) throw refusalError(transport, response.status, json);
    if (json === undefined) throw notAConsoleError(transport, 'the response is not JSON');
    return json as T;
  }

  #getTransport(): Promise<Transport> {
    this.#transport ??= this.#findTransport();
    return this.#transport;
  }
}

async function send(transport: Transport, request: ConsoleRequest): Promise<ConsoleResponse> {
  try {
    return await transport.send(request);
  } catch (error) {
    if (request.signal.aborted && request.signal.reason?.name !== 'TimeoutError') throw error;
    const hint = isUntrustedCertificate(error) ? transport.hints.untrusted : transport.hints.unreachable;
    const message = `no console answers at ${transport.baseUrl} (${errorMessage(error)}); ${hint}`;
    throw new ConsoleError('NO_CONSOLE', message, { cause: error });
  }
}

/**
 * Whether a request failed because Node.js does not trust the issuer of the server's certificate. A certificate for a wrong host name does
 * not count.
 */
function isUntrustedCertificate(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(code);
}

async function readJson({ body }: ConsoleResponse): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of body) chunks.push(chunk);
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

function refusalError(transport: Transport, status: number, json: unknown): ConsoleError {
  const { code: reason, message } = parseApiError(json) ?? {};
  if (reason !== undefined && message !== undefined) {
    const text = status === 401 ? `${message}; ${transport.hints.signIn}` : message;
    return new ConsoleError(status === 404 ? 'NOT_FOUND' : 'REFUSED', text, { reason });
  }
  return notAConsoleError(transport, parseKubernetesStatus(json) ?? `HTTP ${status}`);
}

function notAConsoleError({ baseUrl, hints }: Transport, reason: string): ConsoleError {
  return new ConsoleError(
    'REFUSED',
    `the server at ${baseUrl} is not a Weir console (${reason}); ${hints.notAConsole}`,
  );
}

function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

/**
 * Returns the message of a Kubernetes `Status` object, or undefined for any other body. An API server that cannot forward a request to the
 * console answers with a `Status`.
 */
function parseKubernetesStatus(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('kind' in body) || body.kind !== 'Status') return undefined;
  return 'message' in body ? String(body.message) : undefined;
}

function parseApiError(body: unknown): { code: string; message: string } | undefined {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined;
  const { error } = body;
  if (typeof error !== 'object' || error === null || !('code' in error) || !('message' in error)) return undefined;
  return { code: String(error.code), message: String(error.message) };
}
