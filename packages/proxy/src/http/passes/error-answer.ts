// The small answers that Weir makes itself when no endpoint can answer. An answer contains nothing that the client sent.
import type { RequestRefusal } from '../../metering/outcome.ts';
import type { AnswerFormat } from './answer-format.ts';
import { asciiBytes, type ByteWriter, fieldLine } from './byte-writer.ts';
import { grpcMessageFor, grpcStatusFor } from './grpc-status.ts';
import { REQUEST_ID_BYTES } from './request-ids.ts';

interface Reason {
  readonly status: keyof typeof STATUS_TEXTS;
  readonly message: string;
  /** Whether the connection must end, because nobody knows where the next request starts. */
  readonly closes?: true;
}

const STATUS_TEXTS = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  413: 'Content Too Large',
  414: 'URI Too Long',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
} as const;

/** Why Weir answers in place of an endpoint. */
export type ErrorReason = RequestRefusal;

/** The status code and the text of each reason. */
export const ERROR_REASONS: Readonly<Record<ErrorReason, Reason>> = {
  'invalid-request': { status: 400, message: 'The request is not valid HTTP.', closes: true },
  forbidden: { status: 403, message: 'This client may not use this service.' },
  suspended: { status: 403, message: 'This service is suspended.' },
  'no-route': { status: 404, message: 'No service answers this host and path.' },
  'request-timeout': { status: 408, message: 'The request did not arrive in time.', closes: true },
  'body-too-large': {
    status: 413,
    message: 'The body of the request is larger than this service allows.',
    closes: true,
  },
  'target-too-long': { status: 414, message: 'The target of the request is too long.', closes: true },
  'unknown-expectation': { status: 417, message: 'The field Expect of the request is not supported.', closes: true },
  'misdirected-request': { status: 421, message: 'This connection is for another host. Open a new connection.' },
  'too-many-requests': { status: 429, message: 'There were too many requests. Try again later.' },
  'client-limit': { status: 429, message: 'This client has too many open connections. Try again later.' },
  'rate-limit': { status: 429, message: 'There were too many new connections. Try again later.' },
  'head-too-large': { status: 431, message: 'The header fields of the request are too large.', closes: true },
  'no-backend': { status: 500, message: 'The route of the request leads to no service.' },
  'not-implemented': { status: 501, message: 'The method of the request is not supported.', closes: true },
  'connect-failed': { status: 502, message: 'The service did not accept the connection.' },
  'endpoint-failed': { status: 502, message: 'The service closed the connection without an answer.' },
  'retry-limit': { status: 502, message: 'The connection to the service failed, as did too many others.' },
  'invalid-response': { status: 502, message: 'The answer of the service was not valid HTTP.' },
  'no-endpoints': { status: 503, message: 'No endpoint of the service is ready.' },
  overloaded: { status: 503, message: 'The service has too many requests in progress. Try again later.' },
  'connection-limit': { status: 503, message: 'The service has too many open connections. Try again later.' },
  'no-descriptors': { status: 503, message: 'The proxy has too many open connections. Try again later.' },
  'connect-timeout': { status: 504, message: 'The service did not accept the connection in time.' },
  'endpoint-timeout': { status: 504, message: 'The service did not answer in time.' },
  'unsupported-version': { status: 505, message: 'The HTTP version of the request is not supported.', closes: true },
};

/** A page of the tenant that replaces the body of an answer. */
export interface ErrorPage {
  readonly body: Uint8Array;
  /** The line Content-Type (`fieldLine`). */
  readonly contentTypeLine: Uint8Array;
}

export const MAX_ERROR_PAGE_BYTES: number = 16 * 1024;

export interface ErrorAnswer {
  readonly reason: ErrorReason;
  readonly format: AnswerFormat;
  /** Whether the request has the method HEAD. */
  readonly isHead: boolean;
  /** Whether the connection ends after the answer for another reason, such as a body that was not read. */
  readonly closes: boolean;
  /** 0 if the client sent HTTP/1.0, 1 for HTTP/1.1. */
  readonly clientMinorVersion: number;
  /** The current time as Date wants it. */
  readonly dateText: Uint8Array;
  /** The 16 bytes of the request id that Weir made. Undefined if the client has chosen the id: answers echo nothing. */
  readonly requestId?: Uint8Array | undefined;
  /** When the client may try again. An answer 429 without this value says one second. */
  readonly retryAfterSeconds?: number | undefined;
  /** Replaces the text of the reason, for example with the message of a suspension. */
  readonly message?: string | undefined;
  /** The tenant's page, at most `MAX_ERROR_PAGE_BYTES`. A larger page is ignored. */
  readonly page?: ErrorPage | undefined;
}

/** Whether the connection must end after an answer with this reason. */
export function closesConnection(reason: ErrorReason): boolean {
  return ERROR_REASONS[reason].closes === true;
}

/**
 * Writes an answer of Weir itself, head and body, and returns the position after the answer, or -1 if the memory of the
 * writer is too small. 2 KiB are enough for an answer without a message and a page.
 */
export function writeErrorAnswer(writer: ByteWriter, answer: ErrorAnswer): number {
  const { reason, format, requestId, page, message } = answer;
  const template = message === undefined ? cachedTemplate(reason, format) : messageTemplate(reason, format, message);
  const retryAfterSeconds = answer.retryAfterSeconds ?? (ERROR_REASONS[reason].status === 429 ? 1 : undefined);
  const usesPage = page !== undefined && format !== 'grpc' && page.body.length <= MAX_ERROR_PAGE_BYTES;
  writer.bytes(template.statusLine);
  writer.bytes(usesPage ? page.contentTypeLine : template.typeLines);
  writer.bytes(CONTENT_LENGTH_PREFIX);
  // A gRPC answer has no body.
  const bodyId = format === 'grpc' ? undefined : requestId;
  writer.decimal(usesPage ? page.body.length : bodyLengthOf(template, bodyId !== undefined));
  writer.bytes(FIXED_LINES);
  writer.bytes(answer.dateText);
  writer.bytes(CRLF);
  if (requestId !== undefined) {
    writer.bytes(REQUEST_ID_PREFIX);
    writer.hex(requestId, REQUEST_ID_BYTES);
    writer.bytes(CRLF);
  }
  if (retryAfterSeconds !== undefined) {
    writer.bytes(RETRY_AFTER_PREFIX);
    writer.decimal(Math.max(1, Math.ceil(retryAfterSeconds)));
    writer.bytes(CRLF);
  }
  writer.bytes(connectionLinesOf(answer));
  writer.bytes(CRLF);
  // RFC 9110 §9.3.2: the answer to HEAD has the fields of the answer to GET, and no body.
  if (answer.isHead) return writer.at;
  if (usesPage) writer.bytes(page.body);
  else writeBody(writer, template, bodyId);
  return writer.at;
}

/** The parts of an answer that are the same each time. The request id stands between the parts of the body. */
interface Template {
  readonly statusLine: Uint8Array;
  /** Content-Type, and the gRPC fields. */
  readonly typeLines: Uint8Array;
  readonly bodyStart: Uint8Array;
  readonly beforeId: Uint8Array;
  readonly afterId: Uint8Array;
  readonly bodyEnd: Uint8Array;
}

const CRLF: Uint8Array = asciiBytes('\r\n');
const CONTENT_LENGTH_PREFIX: Uint8Array = asciiBytes('Content-Length: ');
/** No cache may keep an answer that says what is wrong now, and no browser may guess another type. */
const FIXED_LINES: Uint8Array = asciiBytes('\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nDate: ');
const REQUEST_ID_PREFIX: Uint8Array = asciiBytes('X-Request-Id: ');
const RETRY_AFTER_PREFIX: Uint8Array = asciiBytes('Retry-After: ');
const CLOSE_LINE: Uint8Array = asciiBytes('Connection: close\r\n');
const KEEP_ALIVE_LINE: Uint8Array = asciiBytes('Connection: keep-alive\r\n');
const NO_LINES: Uint8Array = new Uint8Array(0);
export const CONTENT_TYPES: Readonly<Record<AnswerFormat, string>> = {
  text: 'text/plain; charset=utf-8',
  json: 'application/json',
  html: 'text/html; charset=utf-8',
  grpc: 'application/grpc',
};

/** The templates that were used so far, by reason and format. */
const templates: Map<string, Template> = new Map();

function cachedTemplate(reason: ErrorReason, format: AnswerFormat): Template {
  const key = `${reason} ${format}`;
  let template = templates.get(key);
  if (template === undefined) {
    template = buildTemplate(reason, format, ERROR_REASONS[reason].message);
    templates.set(key, template);
  }
  return template;
}

interface MessageTemplate {
  readonly reason: ErrorReason;
  readonly message: string;
  readonly template: Template;
}

/** The last template with a message of its own in each format, because a suspended Service may get many requests. */
const messageTemplates: Map<AnswerFormat, MessageTemplate> = new Map();

function messageTemplate(reason: ErrorReason, format: AnswerFormat, message: string): Template {
  const last = messageTemplates.get(format);
  if (last?.reason === reason && last.message === message) return last.template;
  const template = buildTemplate(reason, format, message);
  messageTemplates.set(format, { reason, message, template });
  return template;
}

function buildTemplate(reason: ErrorReason, format: AnswerFormat, message: string): Template {
  const { status } = ERROR_REASONS[reason];
  const title = `${status} ${STATUS_TEXTS[status]}`;
  const encoder = new TextEncoder();
  const [bodyStart, beforeId, afterId, bodyEnd] = bodyParts({ status, title, reason, message, format });
  return {
    statusLine: asciiBytes(`HTTP/1.1 ${format === 'grpc' ? '200 OK' : title}\r\n`),
    typeLines: typeLinesOf(reason, format, message),
    bodyStart: encoder.encode(bodyStart),
    beforeId: encoder.encode(beforeId),
    afterId: encoder.encode(afterId),
    bodyEnd: encoder.encode(bodyEnd),
  };
}

function typeLinesOf(reason: ErrorReason, format: AnswerFormat, message: string): Uint8Array {
  const contentTypeLine = fieldLine('Content-Type', CONTENT_TYPES[format]);
  if (format !== 'grpc') return contentTypeLine;
  const status = String(grpcStatusFor(reason, ERROR_REASONS[reason].status));
  return Buffer.concat([
    contentTypeLine,
    fieldLine('grpc-status', status),
    fieldLine('grpc-message', grpcMessageFor(message)),
  ]);
}

/** Returns the text of the body: its start, the text before and after the id, and its end. */
function bodyParts({
  status,
  title,
  reason,
  message,
  format,
}: {
  readonly status: number;
  readonly title: string;
  readonly reason: ErrorReason;
  readonly message: string;
  readonly format: AnswerFormat;
}): readonly [string, string, string, string] {
  switch (format) {
    case 'grpc':
      return ['', '', '', ''];
    case 'text':
      return [`${title}\n\n${message}\n`, 'Request: ', '\n', ''];
    case 'json':
      return [
        `{"status":${status},"reason":"${reason}","message":${JSON.stringify(message)}`,
        ',"requestId":"',
        '"',
        '}\n',
      ];
    case 'html':
      return [
        `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>${title}</title>\n` +
          `<h1>${title}</h1>\n<p>${escapeHtml(message)}</p>\n`,
        '<p>Request: <code>',
        '</code></p>\n',
        '</html>\n',
      ];
  }
}

function bodyLengthOf({ bodyStart, beforeId, afterId, bodyEnd }: Template, hasId: boolean): number {
  const idLength = hasId ? beforeId.length + 2 * REQUEST_ID_BYTES + afterId.length : 0;
  return bodyStart.length + idLength + bodyEnd.length;
}

function writeBody(writer: ByteWriter, template: Template, requestId: Uint8Array | undefined): void {
  writer.bytes(template.bodyStart);
  if (requestId !== undefined) {
    writer.bytes(template.beforeId);
    writer.hex(requestId, REQUEST_ID_BYTES);
    writer.bytes(template.afterId);
  }
  writer.bytes(template.bodyEnd);
}

function connectionLinesOf({ reason, closes, clientMinorVersion }: ErrorAnswer): Uint8Array {
  if (closes || closesConnection(reason)) return CLOSE_LINE;
  // RFC 9112 §9.3: an HTTP/1.0 connection stays open only if the answer says so.
  return clientMinorVersion === 0 ? KEEP_ALIVE_LINE : NO_LINES;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
