// How a request comes to a console.
import http from 'node:http';
import type { RequestOptions } from 'node:https';

export interface ConsoleRequest {
  readonly method: string;
  /** With the query: `/api/v1/services?tenant=shop`. */
  readonly path: string;
  readonly body?: unknown;
  readonly isStream: boolean;
  readonly signal: AbortSignal;
}

export interface ConsoleResponse {
  readonly status: number;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Transport {
  /** The URL below which it is, for messages. */
  readonly baseUrl: string;
  readonly hints: ErrorHints;
  send(question: ConsoleRequest): Promise<ConsoleResponse>;
}

/** What to do. */
export interface ErrorHints {
  /** Nobody answers there. */
  readonly unreachable: string;
  /** Something else does. */
  readonly notAConsole: string;
  /** Nothing says that the certificate there may be believed. */
  readonly untrusted: string;
}

export interface SendOptions extends RequestOptions {
  readonly url: URL;
  readonly request: ConsoleRequest;
}

/** Rejects when nobody answers, or the signal aborts; any answer is one. */
export async function sendRequest({
  url,
  request: question,
  headers,
  ...options
}: SendOptions): Promise<ConsoleResponse> {
  const { method, body, signal, isStream } = question;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { request } = url.protocol === 'https:' ? await import('node:https') : http;
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const sending = request(url, {
    ...options,
    method,
    signal,
    headers: {
      ...headers,
      accept: isStream ? 'text/event-stream' : 'application/json',
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    },
  });
  sending.once('response', resolve);
  sending.once('error', (error) => reject(signal.aborted ? signal.reason : error));
  sending.end(text);
  const response = await promise;
  return { status: response.statusCode ?? 0, body: response };
}
