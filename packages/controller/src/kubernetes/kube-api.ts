import { readFile } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import type { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, type HttpClient, WeirError } from '@weir/runtime';
import { KubeApiError, kubeApiErrorFor } from './kube-api-error.ts';
import { connectTo, loadKubeConfig } from './kube-config.ts';

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

export const WEIR_API_VERSION = 'weir.dev/v1alpha1';
export const WEIR_API_PATH = '/apis/weir.dev/v1alpha1';

export interface KubeApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Json;
  /** The content type of `body`; default `application/json`. */
  readonly contentType?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called synchronously before the request is sent. If it throws, nothing is sent and `request` rejects with the error. */
  readonly beforeSending?: () => void;
}

export interface WatchRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the watch. */
  onOpen(): void;
  onEvent(type: string, object: Json): void;
}

/**
 * Called once per request with the method and the HTTP status. The method is `WATCH` when a watch opens. The status is undefined if
 * there was no response.
 */
export type ResponseObserver = (verb: KubeApiRequest['method'] | 'WATCH', code: number | undefined) => void;

export const SERVER_SIDE_APPLY = 'application/apply-patch+yaml';
export const FIELD_MANAGER = 'weir-controller';

export interface KubeApiOptions {
  /** How long to wait for a complete response, or for the response head of a watch. */
  readonly timeoutMs?: number;
  /** How long a watch may receive nothing before `watch` ends it. */
  readonly watchIdleTimeoutMs?: number;
  readonly onResponse?: ResponseObserver;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** How long a watch may receive nothing. Most servers send a bookmark each minute. */
const DEFAULT_WATCH_IDLE_TIMEOUT_MS = 90_000;

/** A client for JSON requests and watches. Requests reject with `KubeApiError`, or with the reason of the request's signal. */
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

  async request(request: KubeApiRequest): Promise<Json> {
    const { method, path, query, body, contentType, timeoutMs, signal, beforeSending } = request;
    const timeout = new RenewableTimeout(timeoutMs ?? this.#timeoutMs, signal);
    const requestName = `${method} ${path}`;
    let code: number | undefined;
    try {
      const response = await this.#connection.send({
        method,
        path: `${path}${queryText(query)}`,
        headers: body === undefined ? {} : { 'content-type': contentType ?? 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(beforeSending !== undefined && { beforeSending }),
        signal: timeout.signal,
      });
      const text = await readText(response);
      const { statusCode = 0 } = response;
      code = statusCode;
      this.#onResponse(method, code);
      if (statusCode < 200 || statusCode > 299) throw kubeApiErrorFor(requestName, response, text);
      return parseJson(text, requestName) as Json;
    } catch (error) {
      const failure = this.#toApiError(error, { requestName, timeout, signal });
      if (code === undefined && failure instanceof KubeApiError) this.#onResponse(method, undefined);
      throw failure;
    } finally {
      timeout.clear();
    }
  }

  /**
   * Watches a list. Resolves when the server ends the watch (every few minutes), or after `watchIdleTimeoutMs` of silence. Silence is not a
   * failure, because some servers send no bookmarks for kinds that do not change (etcd 3.4 reports no progress). If the server is
   * unreachable, opening the next watch fails.
   */
  async watch({ path, query, signal, onOpen, onEvent }: WatchRequest): Promise<void> {
    const timeout = new RenewableTimeout(this.#timeoutMs, signal);
    const requestName = `WATCH ${path}`;
    let isOpen = false;
    let code: number | undefined;
    try {
      const fullPath = `${path}${queryText({ ...query, watch: 'true', allowWatchBookmarks: 'true' })}`;
      const response = await this.#connection.send({
        method: 'GET',
        path: fullPath,
        headers: {},
        signal: timeout.signal,
      });
      code = response.statusCode;
      this.#onResponse('WATCH', code);
      if (code !== 200) throw kubeApiErrorFor(requestName, response, await readText(response));
      isOpen = true;
      timeout.renew(this.#watchIdleTimeoutMs);
      onOpen();
      for await (const line of linesOf(response)) {
        timeout.renew(this.#watchIdleTimeoutMs);
        const { type, object } = parseJson(line, requestName) as { type: string; object: Json };
        onEvent(type, object);
      }
    } catch (error) {
      if (isOpen && timeout.isExpired && !signal.aborted) return;
      const failure = this.#toApiError(error, { requestName, timeout, signal });
      if (code === undefined && failure instanceof KubeApiError) this.#onResponse('WATCH', undefined);
      throw failure;
    } finally {
      timeout.clear();
    }
  }

  close(): void {
    this.#connection.close();
  }

  #toApiError(
    error: unknown,
    {
      requestName,
      timeout,
      signal,
    }: { readonly requestName: string; readonly timeout: RenewableTimeout; readonly signal: AbortSignal | undefined },
  ): unknown {
    if (signal?.aborted) return signal.reason;
    if (timeout.isExpired)
      return new KubeApiError('AWAY', `${requestName}: the API server ${this.server} did not answer in time`);
    if (error instanceof WeirError) return error;
    return new KubeApiError('AWAY', `${requestName}: the response of the API server ${this.server} was cut off`, {
      cause: error,
    });
  }
}

/**
 * Parses a response. The error omits the parser's message, because that message quotes the response, and the response may contain a
 * Secret.
 */
function parseJson(text: string, requestName: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new KubeApiError('AWAY', `${requestName}: the response of the API server is not JSON`);
  }
}

async function readText(response: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Yields the lines of a response. Unlike `readline`, this generator rejects when the stream fails, and never yields an incomplete line. */
async function* linesOf(response: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let incomplete: string[] = [];
  for await (const chunk of response) {
    const lines = decoder.write(chunk).split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      yield incomplete.join('') + line;
      incomplete = [];
    }
    if (last !== '') incomplete.push(last);
  }
}

function queryText(query: Readonly<Record<string, string>> | undefined): string {
  return query === undefined ? '' : `?${new URLSearchParams(query)}`;
}

/** Aborts its signal after a time that can be renewed, or when the caller's signal aborts. */
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

/**
 * An API client that reads the kubeconfig again whenever the file changes. If the kubeconfig is unusable, requests reject with a
 * `KubeApiError`.
 */
export class ReloadingKubeApi {
  readonly #path: string;
  readonly #options: KubeApiOptions;
  #loaded: { readonly text: string; readonly api: KubeApi } | undefined;

  constructor(path: string, options: KubeApiOptions = {}) {
    this.#path = path;
    this.#options = options;
  }

  async request(request: KubeApiRequest): Promise<Json> {
    return (await this.#api()).request(request);
  }

  async watch(request: WatchRequest): Promise<void> {
    return (await this.#api()).watch(request);
  }

  close(): void {
    this.#loaded?.api.close();
  }

  async #api(): Promise<KubeApi> {
    // If the file is unreadable, `loadKubeConfig` throws the reason.
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
