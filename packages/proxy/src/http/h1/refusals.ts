/** Why a field line of a head or of a trailer section is refused. */
export type FieldRefusal =
  /** A bare LF, or a CR that no LF follows. */
  | 'invalid-line-ending'
  | 'folded-field'
  /** An empty name, a byte that is not allowed in a token, or whitespace before the colon. */
  | 'invalid-field-name'
  /** A NUL or another control in a value. */
  | 'invalid-field-value'
  | 'field-too-large'
  | 'too-many-fields';

/** Why the framing of a message is refused. */
export type FramingRefusal =
  /** A Content-Length that is not one decimal number, or that exceeds 2^53 − 1. */
  | 'invalid-content-length'
  | 'several-content-lengths'
  | 'content-length-with-transfer-encoding'
  /** Any value other than exactly one `chunked`, or Transfer-Encoding in a message that must not have it. */
  | 'invalid-transfer-encoding'
  /** A Content-Length above 0 in a response that has no body. */
  | 'unexpected-content-length';

/** Why the body of a message is refused. */
export type ChunkRefusal =
  | FieldRefusal
  | 'invalid-chunk-size'
  /** A chunk size above 2^53 − 1, or with more than 16 digits. */
  | 'chunk-size-too-large'
  | 'invalid-chunk-extension'
  | 'chunk-extensions-too-large'
  /** The data of a chunk are longer or shorter than the size of the chunk. */
  | 'invalid-chunk-ending'
  | 'trailers-too-large';

/** Why the head of a request is refused. */
export type RequestHeadRefusal =
  | FieldRefusal
  | FramingRefusal
  | 'invalid-method'
  | 'method-too-long'
  | 'connect-not-supported'
  | 'invalid-target'
  | 'target-too-long'
  /** The request line does not end with a space and a version of the form `HTTP/1.1`. */
  | 'invalid-request-line'
  | 'unsupported-version'
  | 'head-too-large'
  /** A known name with `_` in place of `-`. */
  | 'ambiguous-field-name'
  | 'missing-host'
  | 'several-hosts'
  | 'invalid-host'
  /** The target names another host or port than the Host field. */
  | 'host-mismatch';

/** Why the head of a response is refused. The client gets a 502. */
export type ResponseHeadRefusal = FieldRefusal | FramingRefusal | 'invalid-status-line' | 'head-too-large';

/** Why a request is refused: its head or its body. */
export type RequestRefusal = RequestHeadRefusal | ChunkRefusal;

/** The status code that answers a refused request. */
export const REFUSAL_STATUS: Readonly<Record<RequestRefusal, 400 | 414 | 431 | 501 | 505>> = {
  'invalid-line-ending': 400,
  'folded-field': 400,
  'invalid-field-name': 400,
  'invalid-field-value': 400,
  'field-too-large': 431,
  'too-many-fields': 431,
  'invalid-content-length': 400,
  'several-content-lengths': 400,
  'content-length-with-transfer-encoding': 400,
  'invalid-transfer-encoding': 400,
  'unexpected-content-length': 400,
  'invalid-chunk-size': 400,
  'chunk-size-too-large': 400,
  'invalid-chunk-extension': 400,
  'chunk-extensions-too-large': 400,
  'invalid-chunk-ending': 400,
  'trailers-too-large': 431,
  'invalid-method': 400,
  // RFC 9112 §3: a server that receives a method longer than any that it implements should respond with a 501.
  'method-too-long': 501,
  // RFC 9110 §9.1: a method that is not implemented is answered with a 501; a 405 would name other methods of a target.
  'connect-not-supported': 501,
  'invalid-target': 400,
  'target-too-long': 414,
  'invalid-request-line': 400,
  'unsupported-version': 505,
  'head-too-large': 431,
  'ambiguous-field-name': 400,
  'missing-host': 400,
  'several-hosts': 400,
  'invalid-host': 400,
  'host-mismatch': 400,
};
