import { errorMessage, WeirError } from '@weir/runtime';
import type { ConsoleRequest, ConsoleResponse, Transport } from './transport.ts';

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

const REQUEST_TIMEOUT_MS = 10_000;

/** The console's API as the client commands use it. */
export class ConsoleClient {
  readonly #findTransport: () => Promise<Transport>;
  #transport: Promise<Transport> | undefined;

  constructor(find: () => Promise<Transport>) {
    this.#findTransport = find;
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

  /** The chunks of a stream that never ends by itself. */
  async stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const way = await this.#getTransport();
    const answer = await send(way, { method: 'GET', path, isStream: true, signal });
    if (answer.status !== 200) throw refusalError(way, answer.status, await readJson(answer));
    return answer.body;
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const way = await this.#getTransport();
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const answer = await send(way, { method, path, body, isStream: false, signal });
    const json = await readJson(answer);
    if (answer.status < 200 || answer.status > 299) throw refusalError(way, answer.status, json);
    if (json === undefined) throw notAConsoleError(way, 'the answer is no JSON');
    return json as T;
  }

  #getTransport(): Promise<Transport> {
    this.#transport ??= this.#findTransport();
    return this.#transport;
  }
}

async function send(way: Transport, question: ConsoleRequest): Promise<ConsoleResponse> {
  try {
    return await way.send(question);
  } catch (error) {
    if (question.signal.aborted && question.signal.reason?.name !== 'TimeoutError') throw error;
    const what = `no console answers at ${way.baseUrl} (${errorMessage(error)})`;
    const todo = isUntrustedCertificate(error) ? way.hints.untrusted : way.hints.unreachable;
    throw new ConsoleError('NO_CONSOLE', `${what}; ${todo}`, { cause: error });
  }
}

/** What Node calls a certificate that it does not believe; those of the name that it is for are not among them. */
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

function refusalError(way: Transport, status: number, json: unknown): ConsoleError {
  const { code: reason, message } = parseApiError(json) ?? {};
  if (reason !== undefined && message !== undefined) {
    return new ConsoleError(status === 404 ? 'NOT_FOUND' : 'REFUSED', message, { reason });
  }
  return notAConsoleError(way, parseKubernetesStatus(json) ?? `HTTP ${status}`);
}

function notAConsoleError({ baseUrl, hints }: Transport, why: string): ConsoleError {
  return new ConsoleError(
    'REFUSED',
    `what answers at ${baseUrl} is not a console of Weir (${why}); ${hints.notAConsole}`,
  );
}

function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

/** What an API server says itself. */
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
