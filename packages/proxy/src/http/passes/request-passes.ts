// What the proxy changes in a request head before an endpoint receives the head.
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import { FIELD } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import { asciiBytes } from './byte-writer.ts';
import { CONNECTION_OPTION, dropHopByHop, hasListMember, isValue } from './connection-options.ts';
import { takeEndpointCookie } from './endpoint-cookie.ts';
import { writeForwarded, writeXForwarded } from './forwarded.ts';
import type { HeadEdit } from './head-edit.ts';
import { applyHeaderFilters } from './header-filters.ts';
import { appendUpgrade, appendVia, replaceFraming, WEBSOCKET } from './message-fields.ts';
import type { RequestContext } from './request-context.ts';
import { writeRequestId, writeTraceContext } from './request-ids.ts';

type RequestPass = (edit: HeadEdit, context: RequestContext) => void;

/** All passes in their order. Filters come last, so that a route has the last word about the fields it may change. */
export const REQUEST_PASSES: readonly RequestPass[] = [
  dropConnectionFields,
  keepWebSocketUpgrade,
  keepTrailersOption,
  checkExpectation,
  writeXForwarded,
  writeForwarded,
  hideEndpointCookie,
  rewriteTarget,
  writeHost,
  writeVia,
  writeRequestId,
  writeTraceContext,
  writeFraming,
  applyFilters,
];

/** Applies all request passes to the head of `context`. The result is in `edit` and in the results of `context`. */
export function editRequest(edit: HeadEdit, context: RequestContext): void {
  edit.begin(context.head.fields);
  for (const pass of REQUEST_PASSES) pass(edit, context);
}

const WEBSOCKET_KEY: Uint8Array = asciiBytes('sec-websocket-key');
const CONTINUE: Uint8Array = asciiBytes('100-continue');
const TRAILERS: Uint8Array = asciiBytes('trailers');
const TRAILERS_LINES: Uint8Array = asciiBytes('Connection: TE\r\nTE: trailers\r\n');

/** Drops the fields that concern only the client's connection (RFC 9110 §7.6.1). */
function dropConnectionFields(edit: HeadEdit, context: RequestContext): void {
  context.connectionOptions = dropHopByHop(edit);
}

/** Writes Connection and Upgrade anew if the client asks for a WebSocket. All other upgrades are dropped. */
function keepWebSocketUpgrade(edit: HeadEdit, context: RequestContext): void {
  const { head, connectionOptions, webSocketKeyLine } = context;
  if (webSocketKeyLine !== undefined) {
    context.isWebSocket = true;
    edit.dropByName(WEBSOCKET_KEY);
    edit.appended.bytes(webSocketKeyLine);
    appendUpgrade(edit);
    return;
  }
  context.isWebSocket =
    (connectionOptions & CONNECTION_OPTION.upgrade) !== 0 &&
    // RFC 9110 §7.8: a server ignores Upgrade in an HTTP/1.0 request.
    head.minorVersion > 0 &&
    // RFC 6455 §4.1: the method is GET. An endpoint could take a body for the first bytes of the WebSocket.
    head.methodId === METHOD.get &&
    head.framing.kind === 'none' &&
    hasListMember(edit, FIELD.upgrade, WEBSOCKET);
  if (context.isWebSocket) appendUpgrade(edit);
}

/** Keeps only `trailers` of TE, because the proxy passes on no transfer coding but `chunked`. */
function keepTrailersOption(edit: HeadEdit, { isWebSocket }: RequestContext): void {
  if (isWebSocket || !hasListMember(edit, FIELD.te, TRAILERS)) return;
  // RFC 9110 §10.1.4: a sender of TE also sends the option TE in Connection.
  edit.appended.bytes(TRAILERS_LINES);
}

/**
 * Keeps Expect if an HTTP/1.1 client announces a body with `100-continue`. The caller refuses other expectations with
 * 417, because proxies and endpoints that read an expectation differently also disagree about where the body starts.
 */
function checkExpectation(edit: HeadEdit, context: RequestContext): void {
  const { head } = context;
  const index = edit.firstOf(FIELD.expect);
  context.expectation = 'none';
  if (index < 0) return;
  // RFC 9110 §10.1.1: 100-continue is ignored in an HTTP/1.0 request, and a client must not send it without a body.
  if (head.minorVersion === 0 || head.framing.kind === 'none') edit.drop(FIELD.expect);
  else if (edit.countOf(FIELD.expect) === 1 && isValue(edit, index, CONTINUE)) context.expectation = 'continue';
  else context.expectation = 'unknown';
}

/** Removes the cookie of the proxy, and finds out which endpoint the cookie names. */
function hideEndpointCookie(edit: HeadEdit, context: RequestContext): void {
  const { endpointCookie } = context;
  context.cookieEndpoint = endpointCookie && takeEndpointCookie(edit, endpointCookie);
}

/** Sends the target that the route asks for, for example without the path prefix of the route. */
function rewriteTarget(edit: HeadEdit, { targetRewrite }: RequestContext): void {
  edit.target = targetRewrite;
}

/** Sends exactly one Host: that of the route, the received one, that of the target, or that of the listener. */
function writeHost(edit: HeadEdit, { head, hostRewrite, peer }: RequestContext): void {
  const first = edit.firstOf(FIELD.host);
  if (hostRewrite !== undefined) edit.replaceHost(hostRewrite, 0, hostRewrite.length);
  else if (first >= 0) {
    // RFC 9112 §3.2.2: the target's host replaces Host. The parser accepts no Host that differs from the target's.
    if (edit.countOf(FIELD.host) > 1) edit.dropAfter(first, FIELD.host);
  } else if (head.targetForm === 'absolute') edit.replaceHost(head.fields.bytes, head.hostStart, head.pathStart);
  else {
    // RFC 9112 §3.2: every HTTP/1.1 request has a Host. An HTTP/1.0 client may send none, and many endpoints refuse an
    // empty one.
    const host = authorityOf(peer.listener);
    edit.replaceHost(host, 0, host.length);
  }
}

/** Returns the authority of a URI for this address (RFC 3986 §3.2.2: an IPv6 address stands in brackets). */
function authorityOf({ address, port }: SocketAddress): Uint8Array {
  return asciiBytes(address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`);
}

/** Appends this proxy to Via (RFC 9110 §7.6.3). */
function writeVia(edit: HeadEdit, { head }: RequestContext): void {
  appendVia(edit, head);
}

/** Replaces the framing fields by the one that the parser decided, so that the endpoint cannot decide otherwise. */
function writeFraming(edit: HeadEdit, { head: { framing } }: RequestContext): void {
  replaceFraming(edit, framing.kind, framing.length);
}

/** Applies the request filters of the route. */
function applyFilters(edit: HeadEdit, { filters }: RequestContext): void {
  applyHeaderFilters(edit, filters);
}
