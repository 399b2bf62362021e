import { TOKEN_LOWER } from './byte-classes.ts';
import { FIELD, type HeadFields } from './head-fields.ts';
import { METHOD } from './methods.ts';
import type { FramingRefusal } from './refusals.ts';

/** How the end of a body is found. `until-close` occurs only in responses. */
export type BodyKind = 'none' | 'length' | 'chunked' | 'until-close';

/** What the framing of a response depends on besides its fields. */
export interface ResponseContext {
  readonly status: number;
  /** The method of the request (`METHOD`). */
  readonly requestMethod: number;
  /** 0 for HTTP/1.0, 1 for HTTP/1.1. */
  readonly minorVersion: number;
}

const CHUNKED: Uint8Array = Uint8Array.from('chunked', (char) => char.charCodeAt(0));
const ZERO = 0x30;
const CONTENT_LENGTH_BIT = 1 << FIELD.contentLength;
const TRANSFER_ENCODING_BIT = 1 << FIELD.transferEncoding;
const FRAMING_BITS = CONTENT_LENGTH_BIT | TRANSFER_ENCODING_BIT;

/** The framing of one message (RFC 9112 §6). One instance is allocated per parser and reused for each message. */
export class BodyFraming {
  kind: BodyKind = 'none';
  /** The length of the body in bytes if `kind` is `length`; 0 otherwise. */
  length = 0;
  /** Whether no message may follow on the connection, whatever the Connection field says. */
  endsConnection = false;

  /** Decides the framing of a request from its fields. Returns undefined if the framing is valid. */
  decideRequest(fields: HeadFields, minorVersion: number): FramingRefusal | undefined {
    const refusal = this.#decide(fields);
    if (refusal !== undefined) return refusal;
    // RFC 9112 §6.1: the framing of an HTTP/1.0 message with Transfer-Encoding is faulty. An HTTP/1.0 proxy before Weir
    // may have framed the message differently.
    if (this.kind === 'chunked' && minorVersion === 0) return 'invalid-transfer-encoding';
    return undefined;
  }

  /** Decides the framing of a response from its fields. Returns undefined if the framing is valid. */
  decideResponse(fields: HeadFields, context: ResponseContext): FramingRefusal | undefined {
    const refusal = this.#decide(fields);
    if (refusal !== undefined) return refusal;
    const { status, requestMethod, minorVersion } = context;
    if (status < 200 || status === 204) {
      // RFC 9112 §6.1 and RFC 9110 §8.6: a server must not send these fields in a 1xx or 204. An endpoint that does so
      // may also send a body, which would be taken for the next response. Many endpoints send `Content-Length: 0`.
      if (this.kind === 'chunked') return 'invalid-transfer-encoding';
      if (this.length > 0) return 'unexpected-content-length';
      return this.#setNone();
    }
    // RFC 9112 §6.3 rule 1: these responses end after the head, whatever their fields say. The fields describe the
    // response to a GET.
    if (status === 304 || requestMethod === METHOD.head) return this.#setNone();
    // RFC 9112 §6.3 rule 8: a response without a declared length ends with the connection.
    if (this.kind === 'none') this.kind = 'until-close';
    // RFC 9112 §6.1: after an HTTP/1.0 message with Transfer-Encoding, the client closes the connection.
    this.endsConnection = this.kind === 'until-close' || (this.kind === 'chunked' && minorVersion === 0);
    return undefined;
  }

  #setNone(): undefined {
    this.kind = 'none';
    this.length = 0;
  }

  /** Sets `kind` and `length` from Content-Length and Transfer-Encoding; `none` if the message has neither. */
  #decide(fields: HeadFields): FramingRefusal | undefined {
    this.#setNone();
    this.endsConnection = false;
    const { seen, repeated } = fields;
    if ((seen & FRAMING_BITS) === 0) return undefined;
    // RFC 9112 §6.3 rule 3: a message with both fields might be an attempt of request smuggling or response splitting.
    if ((seen & FRAMING_BITS) === FRAMING_BITS) return 'content-length-with-transfer-encoding';
    if ((seen & TRANSFER_ENCODING_BIT) !== 0) {
      // RFC 9112 §6.1: chunked must be applied once and last, otherwise the length of the body is unknown. Weir does not
      // offer other transfer codings.
      const isSingle = (repeated & TRANSFER_ENCODING_BIT) === 0;
      if (!isSingle || !isChunked(fields, fields.indexOf(FIELD.transferEncoding))) return 'invalid-transfer-encoding';
      this.kind = 'chunked';
      return undefined;
    }
    // RFC 9112 §6.3 rule 5 allows several equal lengths. They are refused, because no sender has a reason for them.
    if ((repeated & CONTENT_LENGTH_BIT) !== 0) return 'several-content-lengths';
    const length = parseLength(fields, fields.indexOf(FIELD.contentLength));
    if (length === -1) return 'invalid-content-length';
    this.kind = 'length';
    this.length = length;
    return undefined;
  }
}

/** Reports whether the value of a field is `chunked`, whatever its case. */
function isChunked(fields: HeadFields, index: number): boolean {
  const { bytes } = fields;
  const start = fields.valueStart[index] as number;
  if ((fields.valueEnd[index] as number) - start !== CHUNKED.length) return false;
  for (let at = 0; at < CHUNKED.length; at += 1) {
    if (TOKEN_LOWER[bytes[start + at] as number] !== CHUNKED[at]) return false;
  }
  return true;
}

/** Returns the decimal number of a Content-Length (RFC 9110 §8.6: digits only), or -1 if it is not one or too large. */
function parseLength(fields: HeadFields, index: number): number {
  const { bytes } = fields;
  const end = fields.valueEnd[index] as number;
  let at = fields.valueStart[index] as number;
  if (at === end) return -1;
  let length = 0;
  for (; at < end; at += 1) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    length = length * 10 + digit;
    // RFC 9112 §6.3: a recipient must prevent overflows. Numbers above this limit are not exact.
    if (length > Number.MAX_SAFE_INTEGER) return -1;
  }
  return length;
}
