// Applies the passes to heads, and writes the results and the answers of the proxy itself into the `output` of this thread.

import type { Upstream } from '../upstream/upstream.ts';
import { METHOD } from './h1/methods.ts';
import { RequestHeadParser } from './h1/request-head.ts';
import { ResponseHeadParser } from './h1/response-head.ts';
import type { AnswerFormat } from './passes/answer-format.ts';
import { CONNECTION_OPTION } from './passes/connection-options.ts';
import { ERROR_REASONS, type ErrorReason, writeErrorAnswer } from './passes/error-answer.ts';
import { errorPageFor } from './passes/error-pages.ts';
import { ForwardedPeer } from './passes/forwarded.ts';
import { writeRequestHead, writeResponseHead } from './passes/head-writer.ts';
import type { CompiledFilters } from './passes/header-filters.ts';
import type { RequestContext, RequestHead } from './passes/request-context.ts';
import { editRequest } from './passes/request-passes.ts';
import { editResponse, type ResponseContext, type ResponseHead } from './passes/response-passes.ts';
import type { RoutedTo } from './request-router.ts';
import { dateText, edit, fillRandom, output } from './worker-memory.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What the request passes need. `writeRequest` sets the fields that depend on the request before each use. */
const requestContext: Mutable<RequestContext> = {
  head: new RequestHeadParser(),
  peer: new ForwardedPeer({
    address: '0.0.0.0',
    listener: { address: '0.0.0.0', port: 0 },
    isTls: false,
    isTrusted: false,
    writesForwarded: false,
  }),
  hostRewrite: undefined,
  targetRewrite: undefined,
  filters: undefined,
  endpointCookie: undefined,
  cookieEndpoint: undefined,
  webSocketKeyLine: undefined,
  fillRandom,
  connectionOptions: 0,
  isHttps: false,
  isWebSocket: false,
  expectation: 'none',
  isRequestIdMade: false,
  requestId: new Uint8Array(16),
};

/** What the response passes need. `editResponseFor` sets the fields that depend on the response before each use. */
const responseContext: ResponseContext = {
  head: new ResponseHeadParser(),
  clientMinorVersion: 1,
  isHttps: false,
  isWebSocket: false,
  dateText: () => dateText(Date.now()),
  hstsLine: undefined,
  stickyCookieLine: undefined,
  filters: undefined,
  closes: false,
  connectionOptions: 0,
  startsWebSocket: false,
  bodyKind: 'none',
};

/** What `writeRequest` has found out about a request. Valid until the next call. */
export const writtenRequest: Pick<RequestContext, 'isHttps' | 'isWebSocket' | 'cookieEndpoint'> & {
  readonly closes: boolean;
  readonly id: Pick<RequestContext, 'isRequestIdMade' | 'requestId'>;
} = {
  id: requestContext,
  get cookieEndpoint() {
    return requestContext.cookieEndpoint;
  },
  get isHttps() {
    return requestContext.isHttps;
  },
  get isWebSocket() {
    return requestContext.isWebSocket;
  },
  /** Whether the client wants no further response on the connection. */
  get closes() {
    const { connectionOptions, head } = requestContext;
    // RFC 9112 §9.3: an HTTP/1.1 connection persists without `close`, an HTTP/1.0 connection only with `keep-alive`.
    if ((connectionOptions & CONNECTION_OPTION.close) !== 0) return true;
    return head.minorVersion === 0 && (connectionOptions & CONNECTION_OPTION.keepAlive) === 0;
  },
};

/**
 * Writes the head that an endpoint receives. `routed` is undefined for a request that gets no endpoint. Returns a
 * reason if the request must be refused.
 */
export function writeRequest(
  head: RequestHead,
  {
    peer,
    routed,
    webSocketKeyLine,
  }: Pick<RequestContext, 'peer' | 'webSocketKeyLine'> & { readonly routed: RoutedTo | undefined },
): ErrorReason | undefined {
  requestContext.webSocketKeyLine = webSocketKeyLine;
  requestContext.head = head;
  requestContext.hostRewrite = routed?.hostRewrite;
  requestContext.targetRewrite = routed?.targetRewrite;
  requestContext.filters = routed?.requestFilters;
  requestContext.endpointCookie = routed?.upstream.stickyCookie;
  requestContext.peer = peer;
  editRequest(edit, requestContext);
  output.at = 0;
  if (requestContext.expectation === 'unknown') return 'unknown-expectation';
  return writeRequestHead(output, edit, head) < 0 ? 'head-too-large' : undefined;
}

/** What the passes have found out about a response. */
type WrittenResponse = Pick<ResponseContext, 'closes' | 'bodyKind' | 'connectionOptions'>;

/** The client that receives a response. */
export interface ResponseClient {
  /** 0 if the client sent HTTP/1.0, 1 for HTTP/1.1. */
  readonly minorVersion: number;
  readonly isHttps: boolean;
  /** Whether the client has asked for a WebSocket. */
  readonly isWebSocket: boolean;
  readonly filters: CompiledFilters | undefined;
  /** The line Strict-Transport-Security for a client that uses HTTPS. */
  readonly hstsLine: Uint8Array | undefined;
  /** The line Set-Cookie that binds the client to the endpoint. */
  readonly stickyCookieLine: Uint8Array | undefined;
}

/**
 * Applies the passes to a response. The edited head is in `edit`. Returns what the passes have found out, which is valid
 * until the next call, or undefined if the response cannot be relayed. `closes`: the connection ends after this response.
 */
export function editResponseFor(
  head: ResponseHead,
  { minorVersion, isHttps, isWebSocket, filters, hstsLine, stickyCookieLine }: ResponseClient,
  closes: boolean,
): WrittenResponse | undefined {
  responseContext.head = head;
  responseContext.clientMinorVersion = minorVersion;
  responseContext.isHttps = isHttps;
  responseContext.isWebSocket = isWebSocket;
  responseContext.filters = filters;
  responseContext.hstsLine = hstsLine;
  responseContext.stickyCookieLine = stickyCookieLine;
  responseContext.closes = closes;
  editResponse(edit, responseContext);
  const isUnasked = head.status === 101 && !responseContext.startsWebSocket;
  const isTooLarge = edit.appended.at < 0;
  return isUnasked || isTooLarge ? undefined : responseContext;
}

/**
 * Adds the head that `editResponseFor` has edited to the output. If the head is too large, clears the output and
 * returns false.
 */
export function writeEditedResponse(head: ResponseHead): boolean {
  if (writeResponseHead(output, edit, head) >= 0) return true;
  output.at = 0;
  return false;
}

/** Replaces the output by an answer of the proxy itself. `method` is that of the request (`METHOD`). */
export function writeAnswer(
  reason: ErrorReason,
  answer: {
    readonly format: AnswerFormat;
    readonly method: number;
    readonly clientMinorVersion: number;
    readonly closes: boolean;
    /** The upstream that the request asks for. Undefined if there is none. */
    readonly upstream: Upstream | undefined;
  },
): void {
  const { format, method, clientMinorVersion, closes, upstream } = answer;
  const isHead = method === METHOD.head;
  const isSuspended = reason === 'suspended';
  const message = isSuspended ? upstream?.service.suspensionText : undefined;
  // The message of the operator must not be hidden by a page of the tenant.
  const page = isSuspended ? undefined : errorPageFor(upstream?.route.errorPages, ERROR_REASONS[reason].status, format);
  output.at = 0;
  writeErrorAnswer(output, {
    reason,
    format,
    isHead,
    closes,
    clientMinorVersion,
    dateText: dateText(Date.now()),
    message,
    page,
  });
}
