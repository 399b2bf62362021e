import { errorMessage, UsageError, WeirError } from '@weir/runtime';

export type ConsoleErrorCode =
  /** Nobody answers at the address. */
  | 'NO_CONSOLE'
  /** It answers that there is no such thing. */
  | 'NOT_FOUND'
  /** It answers, but not with what was asked for. */
  | 'REFUSED';

/** The console's answer, or its silence; the message is for people. */
export class ConsoleError extends WeirError<ConsoleErrorCode> {
  /** The `code` of the answer's error. */
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

const TIMEOUT_MS = 10_000;

/** The console's API as the client commands use it. */
export class ConsoleClient {
  readonly #server: URL;

  constructor(server: string) {
    this.#server = parseServer(server);
  }

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.#call('GET', path, { query });
  }

  post<T>(path: string, body: unknown): Promise<T> {
    return this.#call('POST', path, { body });
  }

  delete<T>(path: string): Promise<T> {
    return this.#call('DELETE', path, {});
  }

  /** The chunks of a stream that never ends by itself. */
  async stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const response = await this.#fetch(this.#url(path, {}), { signal, headers: { accept: 'text/event-stream' } });
    if (!response.ok || response.body === null) throw await this.#refusal(response);
    return response.body;
  }

  async #call<T>(method: string, path: string, { query = {}, body }: { query?: Query; body?: unknown }): Promise<T> {
    const response = await this.#fetch(this.#url(path, query), {
      method,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    if (!response.ok) throw await this.#refusal(response);
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw this.#notAConsole(error);
    }
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url, init);
    } catch (error) {
      if (init.signal?.aborted === true && init.signal.reason?.name !== 'TimeoutError') throw error;
      const what = `no console answers at ${this.#server.href} (${errorMessage(error)})`;
      const todo = 'start one with `weir standalone -f DIR`, or say where it is with --server URL or WEIR_SERVER';
      throw new ConsoleError('NO_CONSOLE', `${what}; ${todo}`, { cause: error });
    }
  }

  async #refusal(response: Response): Promise<ConsoleError> {
    const body = await response.json().catch(() => undefined);
    const { code: reason, message } = readError(body) ?? {};
    if (reason === undefined || message === undefined) return this.#notAConsole(new Error(`HTTP ${response.status}`));
    return new ConsoleError(response.status === 404 ? 'NOT_FOUND' : 'REFUSED', message, { reason });
  }

  #notAConsole(cause: unknown): ConsoleError {
    const message = `what answers at ${this.#server.href} is not a console of Weir (${errorMessage(cause)}); check --server or WEIR_SERVER`;
    return new ConsoleError('REFUSED', message, { cause });
  }

  #url(path: string, query: Query): URL {
    const url = new URL(path.replace(/^\//, ''), this.#server);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url;
  }
}

function parseServer(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && url.username + url.password !== '') {
    throw new UsageError(
      '--server (or WEIR_SERVER) holds a user or password, which a console does not take; leave them out',
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--server (or WEIR_SERVER) is "${text}"; use a URL such as http://127.0.0.1:8686`);
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function readError(body: unknown): { code: string; message: string } | undefined {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined;
  const { error } = body;
  if (typeof error !== 'object' || error === null || !('code' in error) || !('message' in error)) return undefined;
  return { code: String(error.code), message: String(error.message) };
}
