import { readFile } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import type { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, type HttpClient, WeirError } from '@weir/runtime';
import { KubeApiError, kubeApiErrorFor } from './kube-api-error.ts';
import { connectTo, loadKubeConfig } from './kube-config.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Json;
  /** Default `application/json`. */
  readonly contentType?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called in the turn in which the request leaves; what it throws is what `request` rejects with, and nothing was sent. */
  readonly beforeSending?: () => void;
}

export interface WatchRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The server has accepted it. */
  onOpen(): void;
  onEvent(type: string, object: Json): void;
}

/** Told of each request: its method, `WATCH` for the opening of a watch, and the status of the answer; undefined: there was none. */
export type ResponseObserver = (verb: ApiRequest['method'] | 'WATCH', code: number | undefined) => void;
export const SERVER_SIDE_APPLY = 'application/apply-patch+yaml';
export const FIELD_MANAGER = 'weir-controller';

export interface KubeApiOptions {
  /** In which an answer must be there; of a watch its head. */
  readonly timeoutMs?: number;
  /** How long a watch may say nothing before it is asked for again. */
  readonly watchIdleTimeoutMs?: number;
  readonly onResponse?: ResponseObserver;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** More than a minute, after which most servers send a bookmark. */
const DEFAULT_WATCH_IDLE_TIMEOUT_MS = 90_000;

/** JSON in, JSON out. Rejects with `ApiError`, or the reason of the signal. */
export class KubeApi {
  readonly #connection: HttpClient;
  readonly #timeoutMs: number;
  readonly #watchIdleTimeoutMs: number;
  readonly #onResponse: ResponseObserver;

  constructor(config: KubeConfig, options: KubeApiOptions = {}) {
    const {
      timeoutMs = DEFAULT_TIMEOUT_MS,
      watchIdleTimeoutMs = DEFAULT_WATCH_IDLE_TIMEOUT_MS,
      onResponse = () => undefined,
    } = options;
    this.#connection = connectTo(config);
    this.#onResponse = onResponse;
    this.#timeoutMs = timeoutMs;
    this.#watchIdleTimeoutMs = watchIdleTimeoutMs;
  }

  get server(): string {
    return this.#connection.server;
  }

  async request(asked: ApiRequest): Promise<Json> {
    const { method, path, query, body, contentType, timeoutMs, signal, beforeSending } = asked;
    const limit = new RenewableTimeout(timeoutMs ?? this.#timeoutMs, signal);
    const what = `${method} ${path}`;
    let code: number | undefined;
    try {
      const response = await this.#connection.send({
        method,
        path: `${path}${queryText(query)}`,
        headers: body === undefined ? {} : { 'content-type': contentType ?? 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(beforeSending !== undefined && { beforeSending }),
        signal: limit.signal,
      });
      const text = await readText(response);
      const { statusCode = 0 } = response;
      code = statusCode;
      this.#onResponse(method, code);
      if (statusCode < 200 || statusCode > 299) throw kubeApiErrorFor(what, response, text);
      return parseJson(text, what) as Json;
    } catch (error) {
      const failure = this.#apiErrorFrom(error, { what, limit, signal });
      if (code === undefined && failure instanceof KubeApiError) this.#onResponse(method, undefined);
      throw failure;
    } finally {
      limit.clear();
    }
  }

  /**
   * Resolves when the server ends the watch, as it does every few minutes, or has said nothing for long. Not every server sends
   * bookmarks of kinds that do not change (etcd 3.4 has no progress to tell of), so silence does not say that it is away: whether
   * it is, asking for the next watch tells.
   */
  async watch({ path, query, signal, onOpen, onEvent }: WatchRequest): Promise<void> {
    const limit = new RenewableTimeout(this.#timeoutMs, signal);
    const what = `WATCH ${path}`;
    let isOpen = false;
    let code: number | undefined;
    try {
      const fullPath = `${path}${queryText({ ...query, watch: 'true', allowWatchBookmarks: 'true' })}`;
      const response = await this.#connection.send({
        method: 'GET',
        path: fullPath,
        headers: {},
        signal: limit.signal,
      });
      code = response.statusCode;
      this.#onResponse('WATCH', code);
      if (code !== 200) throw kubeApiErrorFor(what, response, await readText(response));
      isOpen = true;
      limit.renew(this.#watchIdleTimeoutMs);
      onOpen();
      for await (const line of linesOf(response)) {
        limit.renew(this.#watchIdleTimeoutMs);
        const { type, object } = parseJson(line, what) as { type: string; object: Json };
        onEvent(type, object);
      }
    } catch (error) {
      if (isOpen && limit.isExpired && !signal.aborted) return;
      const failure = this.#apiErrorFrom(error, { what, limit, signal });
      if (code === undefined && failure instanceof KubeApiError) this.#onResponse('WATCH', undefined);
      throw failure;
    } finally {
      limit.clear();
    }
  }

  close(): void {
    this.#connection.close();
  }

  #apiErrorFrom(
    error: unknown,
    {
      what,
      limit,
      signal,
    }: { readonly what: string; readonly limit: RenewableTimeout; readonly signal: AbortSignal | undefined },
  ): unknown {
    if (signal?.aborted) return signal.reason;
    if (limit.isExpired)
      return new KubeApiError('AWAY', `${what}: the API server ${this.server} did not answer in time`);
    if (error instanceof WeirError) return error;
    return new KubeApiError('AWAY', `${what}: the answer of the API server ${this.server} broke off`, { cause: error });
  }
}

/** The parser's own words would quote the answer, which may be of a Secret. */
function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new KubeApiError('AWAY', `${what}: the answer of the API server is no JSON`);
  }
}

async function readText(response: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Unlike readline it tells when the stream broke off, and does not take half a line for a whole one. */
async function* linesOf(response: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let begun: string[] = [];
  for await (const chunk of response) {
    const lines = decoder.write(chunk).split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      yield begun.join('') + line;
      begun = [];
    }
    if (last !== '') begun.push(last);
  }
}

function queryText(query: Readonly<Record<string, string>> | undefined): string {
  return query === undefined ? '' : `?${new URLSearchParams(query)}`;
}

/** A time limit that can be renewed, beside the wish of whoever asked. */
class RenewableTimeout {
  readonly signal: AbortSignal;
  readonly #expired = new AbortController();
  #timer: NodeJS.Timeout;

  constructor(ms: number, signal: AbortSignal | undefined) {
    this.signal = signal === undefined ? this.#expired.signal : AbortSignal.any([signal, this.#expired.signal]);
    this.#timer = this.#start(ms);
  }

  get isExpired(): boolean {
    return this.#expired.signal.aborted;
  }

  renew(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start(ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  #start(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#expired.abort(), ms);
  }
}

/** The API server of a kubeconfig that may be written, mended and replaced while we run. What is wrong with it is an `ApiError`. */
export class ReloadingKubeApi {
  readonly #path: string;
  readonly #options: KubeApiOptions;
  #loaded: { readonly text: string; readonly api: KubeApi } | undefined;

  constructor(path: string, options: KubeApiOptions = {}) {
    this.#path = path;
    this.#options = options;
  }

  async request(asked: ApiRequest): Promise<Json> {
    return (await this.#api()).request(asked);
  }

  async watch(asked: WatchRequest): Promise<void> {
    return (await this.#api()).watch(asked);
  }

  close(): void {
    this.#loaded?.api.close();
  }

  async #api(): Promise<KubeApi> {
    // Why it cannot be read the loading says.
    const text = await readFile(this.#path, 'utf8').catch(() => undefined);
    if (text !== undefined && this.#loaded?.text === text) return this.#loaded.api;
    try {
      const api = new KubeApi(loadKubeConfig(this.#path, '--kubeconfig'), this.#options);
      this.#loaded?.api.close();
      this.#loaded = { text: text ?? '', api };
      return api;
    } catch (error) {
      throw new KubeApiError('UNAUTHORIZED', errorMessage(error), { cause: error });
    }
  }
}
