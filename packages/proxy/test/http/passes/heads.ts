import assert from 'node:assert/strict';
import type { HeadFields } from '../../../src/http/h1/head-fields.ts';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { RequestHeadParser } from '../../../src/http/h1/request-head.ts';
import { ResponseHeadParser } from '../../../src/http/h1/response-head.ts';
import { ByteWriter } from '../../../src/http/passes/byte-writer.ts';
import { ForwardedPeer, type PeerOptions } from '../../../src/http/passes/forwarded.ts';
import { HeadEdit } from '../../../src/http/passes/head-edit.ts';
import { writeRequestHead, writeResponseHead } from '../../../src/http/passes/head-writer.ts';
import { compileHeaderFilters, type HeaderFilter } from '../../../src/http/passes/header-filters.ts';
import type { RequestContext } from '../../../src/http/passes/request-context.ts';
import { editRequest } from '../../../src/http/passes/request-passes.ts';
import { editResponse, type ResponseContext } from '../../../src/http/passes/response-passes.ts';

export const PEER: PeerOptions = {
  address: '192.0.2.7',
  listener: { address: '198.51.100.1', port: 443 },
  isTls: true,
  isTrusted: false,
  writesForwarded: false,
};
export const DATE_TEXT: Uint8Array = Buffer.from('Sun, 06 Nov 1994 08:49:37 GMT');
const MEMORY_BYTES = 65_536;

/** Returns the bytes of a head that is written as lines. */
export function headBytes(lines: readonly string[]): Uint8Array {
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Returns the lines of a head without the empty line at the end. */
export function headLines(head: Uint8Array): readonly string[] {
  const text = Buffer.from(head).toString('latin1');
  assert.ok(text.endsWith('\r\n\r\n'), text);
  return text.slice(0, -4).split('\r\n');
}

export function parseRequest(bytes: Uint8Array): RequestHeadParser {
  const parser = new RequestHeadParser();
  assert.equal(parser.parse(bytes, 0, bytes.length), 'done', Buffer.from(bytes).toString('latin1'));
  return parser;
}

export function parseResponse(bytes: Uint8Array, requestMethod: number = METHOD.get): ResponseHeadParser {
  const parser = new ResponseHeadParser();
  parser.reset(requestMethod);
  assert.equal(parser.parse(bytes, 0, bytes.length), 'done', Buffer.from(bytes).toString('latin1'));
  return parser;
}

/** The fields of a head as pairs of a name in lower case and a value. */
export function fieldPairs(fields: HeadFields): readonly (readonly [string, string])[] {
  return Array.from({ length: fields.count }, (_, index) => [
    fields.nameText(index).toLowerCase(),
    fields.valueText(index),
  ]);
}

/** A context of an untrusted client. The random bytes are 1, 2, 3, … */
export function requestContext(
  head: RequestHeadParser,
  options: Partial<RequestContext> & { readonly headerFilters?: readonly HeaderFilter[] } = {},
): RequestContext {
  let next = 0;
  return {
    head,
    peer: new ForwardedPeer(PEER),
    hostRewrite: undefined,
    targetRewrite: undefined,
    filters: compiled(options.headerFilters),
    endpointCookie: undefined,
    cookieEndpoint: undefined,
    webSocketKeyLine: undefined,
    fillRandom: (memory) => {
      next += 1;
      memory.fill(next);
    },
    connectionOptions: 0,
    expectation: 'none',
    isHttps: false,
    isWebSocket: false,
    isRequestIdMade: false,
    requestId: new Uint8Array(16),
    ...options,
  };
}

export function responseContext(
  head: ResponseHeadParser,
  options: Partial<ResponseContext> & { readonly headerFilters?: readonly HeaderFilter[] } = {},
): ResponseContext {
  return {
    head,
    clientMinorVersion: 1,
    isHttps: true,
    isWebSocket: false,
    dateText: () => DATE_TEXT,
    hstsLine: undefined,
    stickyCookieLine: undefined,
    filters: compiled(options.headerFilters),
    closes: false,
    connectionOptions: 0,
    bodyKind: 'none',
    startsWebSocket: false,
    ...options,
  };
}

/** Applies all request passes and returns the lines that the endpoint gets. */
export function forwardRequest(
  lines: readonly string[],
  options?: Partial<RequestContext> & { readonly headerFilters?: readonly HeaderFilter[] },
): readonly string[] {
  return headLines(writeRequest(requestContext(parseRequest(headBytes(lines)), options)) as Uint8Array);
}

/** Applies all request passes. Returns the head that the endpoint gets, or undefined if the head is too large. */
export function writeRequest(context: RequestContext, memoryBytes: number = MEMORY_BYTES): Uint8Array | undefined {
  const edit = new HeadEdit();
  const writer = new ByteWriter(new Uint8Array(memoryBytes));
  editRequest(edit, context);
  const end = writeRequestHead(writer, edit, context.head);
  return end < 0 ? undefined : writer.memory.subarray(0, end);
}

/** Applies all response passes and returns the lines that the client gets. */
export function forwardResponse(
  lines: readonly string[],
  {
    requestMethod,
    ...options
  }: Partial<ResponseContext> & {
    readonly headerFilters?: readonly HeaderFilter[];
    readonly requestMethod?: number;
  } = {},
): readonly string[] {
  const context = responseContext(parseResponse(headBytes(lines), requestMethod), options);
  return headLines(writeResponse(context) as Uint8Array);
}

/** Applies all response passes. Returns the head that the client gets, or undefined if the head is refused. */
export function writeResponse(context: ResponseContext): Uint8Array | undefined {
  const edit = new HeadEdit();
  const writer = new ByteWriter(new Uint8Array(MEMORY_BYTES));
  editResponse(edit, context);
  const end = writeResponseHead(writer, edit, context.head);
  return end < 0 ? undefined : writer.memory.subarray(0, end);
}

function compiled(filters: readonly HeaderFilter[] | undefined): RequestContext['filters'] {
  return filters && compileHeaderFilters(filters).compiled;
}
