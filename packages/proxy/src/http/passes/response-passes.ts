// What the proxy changes in a response head before the client receives the head.
import type { BodyKind } from '../h1/body-framing.ts';
import { FIELD } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import type { ResponseHeadParser } from '../h1/response-head.ts';
import { asciiBytes } from './byte-writer.ts';
import { CONNECTION_OPTION, dropHopByHop, hasListMember } from './connection-options.ts';
import type { HeadEdit } from './head-edit.ts';
import { applyHeaderFilters, type CompiledFilters } from './header-filters.ts';
import { appendUpgrade, appendVia, replaceFraming, WEBSOCKET } from './message-fields.ts';

/** A parsed response head. */
export type ResponseHead = Pick<
  ResponseHeadParser,
  'fields' | 'framing' | 'requestMethod' | 'majorVersion' | 'minorVersion' | 'status' | 'reasonStart' | 'reasonEnd'
>;

/** What the response passes need to know, and what they find out. All connections of a worker use one record. */
export interface ResponseContext {
  /** The response as it was parsed. */
  head: ResponseHead;
  /** 0 if the client sent HTTP/1.0, 1 for HTTP/1.1. */
  clientMinorVersion: number;
  /** Whether the client uses HTTPS, see `RequestContext`. */
  isHttps: boolean;
  /** Whether the client asked for a WebSocket. */
  isWebSocket: boolean;
  /** Returns the current time as Date wants it, such as `Sun, 06 Nov 1994 08:49:37 GMT`. */
  dateText(this: void): Uint8Array;
  /** The line Strict-Transport-Security of the Service (`fieldLine`). */
  hstsLine: Uint8Array | undefined;
  /** The line Set-Cookie that binds the client to the endpoint (`fieldLine`). */
  stickyCookieLine: Uint8Array | undefined;
  /** The header filters of the route. */
  filters: CompiledFilters | undefined;
  /**
   * Whether the client's connection is closed after this response. Also a result: the passes set the value if only the
   * end of the connection can end the body.
   */
  closes: boolean;

  /** Result: the options of Connection that the endpoint sent, as bits of `CONNECTION_OPTION`. */
  connectionOptions: number;
  /** Result: how the caller must send the body to the client. */
  bodyKind: BodyKind;
  /** Result: whether the response is a 101 that starts the WebSocket. The caller answers any other 101 with 502. */
  startsWebSocket: boolean;
}

type ResponsePass = (edit: HeadEdit, context: ResponseContext) => void;

/** All passes in their order. Filters come late, so that a route has the last word about the fields it may change. */
export const RESPONSE_PASSES: readonly ResponsePass[] = [
  dropConnectionFields,
  checkWebSocket,
  writeVia,
  writeFraming,
  writeDate,
  writeHsts,
  writeStickyCookie,
  applyFilters,
  writeConnection,
];

/**
 * Applies all response passes to the head of `context`. The result is in `edit` and in the results of `context`. RFC
 * 9110 §15.2: the caller sends no interim response (1xx) to an HTTP/1.0 client.
 */
export function editResponse(edit: HeadEdit, context: ResponseContext): void {
  edit.begin(context.head.fields);
  for (const pass of RESPONSE_PASSES) pass(edit, context);
}

const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
const DATE_PREFIX: Uint8Array = asciiBytes('Date: ');
const CLOSE_LINE: Uint8Array = asciiBytes('Connection: close\r\n');
const KEEP_ALIVE_LINE: Uint8Array = asciiBytes('Connection: keep-alive\r\n');
const CRLF: Uint8Array = asciiBytes('\r\n');

/** Drops the fields that concern only the endpoint's connection (RFC 9110 §7.6.1). */
function dropConnectionFields(edit: HeadEdit, context: ResponseContext): void {
  context.connectionOptions = dropHopByHop(edit);
}

/** Finds out whether the response starts the WebSocket that the client asked for. */
function checkWebSocket(edit: HeadEdit, context: ResponseContext): void {
  context.startsWebSocket =
    context.head.status === SWITCHING_PROTOCOLS &&
    context.isWebSocket &&
    // RFC 9110 §15.2.2: a 101 names in Upgrade the protocol that follows.
    (context.connectionOptions & CONNECTION_OPTION.upgrade) !== 0 &&
    hasListMember(edit, FIELD.upgrade, WEBSOCKET);
}

/** Appends this proxy to Via of a final response (RFC 9110 §7.6.3). */
function writeVia(edit: HeadEdit, { head }: ResponseContext): void {
  if (head.status >= 200) appendVia(edit, head);
}

/** Replaces the framing fields by the one that the client needs. */
function writeFraming(edit: HeadEdit, context: ResponseContext): void {
  const { head } = context;
  context.bodyKind = bodyKindFor(head.framing.kind, context.clientMinorVersion);
  if (context.bodyKind === 'until-close') context.closes = true;
  // RFC 9110 §8.6: Content-Length of a HEAD or 304 response is the length that the response to a GET would have.
  if (head.status === NOT_MODIFIED || (head.requestMethod === METHOD.head && hasContent(head.status))) keepLength(edit);
  else replaceFraming(edit, context.bodyKind, head.framing.length);
}

function bodyKindFor(kind: BodyKind, clientMinorVersion: number): BodyKind {
  // RFC 9112 §6.1: an HTTP/1.0 client does not understand Transfer-Encoding.
  if (kind === 'chunked' && clientMinorVersion === 0) return 'until-close';
  // Chunks let the client's connection stay open, and let the client see that a body was cut off.
  if (kind === 'until-close' && clientMinorVersion > 0) return 'chunked';
  return kind;
}

/** Whether a response with this status may have content. RFC 9110 §8.6: 1xx and 204 have no Content-Length. */
function hasContent(status: number): boolean {
  return status >= 200 && status !== NO_CONTENT;
}

/** Adds Date if the endpoint sent none (RFC 9110 §6.6.1). */
function writeDate(edit: HeadEdit, { head, dateText }: ResponseContext): void {
  if (head.status < 200 || edit.countOf(FIELD.date) > 0) return;
  edit.appended.bytes(DATE_PREFIX);
  edit.appended.bytes(dateText());
  edit.appended.bytes(CRLF);
}

/** Replaces Strict-Transport-Security if the Service asks for the field. */
function writeHsts(edit: HeadEdit, { head, isHttps, hstsLine }: ResponseContext): void {
  // RFC 6797 §7.2: a response over an unencrypted connection does not contain the field.
  if (hstsLine === undefined || !isHttps || head.status < 200) return;
  edit.drop(FIELD.strictTransportSecurity);
  edit.appended.bytes(hstsLine);
}

/** Adds the cookie that binds the client to its endpoint, also to the response that starts a WebSocket. */
function writeStickyCookie({ appended }: HeadEdit, { head, stickyCookieLine }: ResponseContext): void {
  if (stickyCookieLine !== undefined && isFinal(head.status)) appended.bytes(stickyCookieLine);
}

/** Applies the response filters of the route to a final response. */
function applyFilters(edit: HeadEdit, { head, filters }: ResponseContext): void {
  if (isFinal(head.status)) applyHeaderFilters(edit, filters);
}

/** Says what follows the response: a WebSocket, the end of the connection or, to an HTTP/1.0 client, another response. */
function writeConnection(edit: HeadEdit, { head, startsWebSocket, closes, clientMinorVersion }: ResponseContext): void {
  if (startsWebSocket) appendUpgrade(edit);
  if (head.status < 200) return;
  // RFC 9112 §9.6: the last response of a connection says that the connection is closed.
  if (closes) edit.appended.bytes(CLOSE_LINE);
  // RFC 9112 §9.3: an HTTP/1.0 connection stays open only if the response says so.
  else if (clientMinorVersion === 0) edit.appended.bytes(KEEP_ALIVE_LINE);
}

/** Whether no other head follows. 101 is the last head of its connection. */
function isFinal(status: number): boolean {
  return status >= 200 || status === SWITCHING_PROTOCOLS;
}

/** Keeps Content-Length, which the parser has checked, and drops Transfer-Encoding. */
function keepLength(edit: HeadEdit): void {
  edit.drop(FIELD.transferEncoding);
  edit.drop(FIELD.trailer);
}
