import { TOKEN_LOWER } from './byte-classes.ts';

/** The number of fields that one head or one trailer section may contain. */
export const MAX_FIELDS = 100;

/** The ids of the fields that the proxy interprets. The id of all other fields is `FIELD.other`. */
export const FIELD = {
  other: 0,
  host: 1,
  contentLength: 2,
  transferEncoding: 3,
  connection: 4,
  keepAlive: 5,
  proxyConnection: 6,
  te: 7,
  trailer: 8,
  upgrade: 9,
  expect: 10,
  via: 11,
  forwarded: 12,
  xForwardedFor: 13,
  xForwardedProto: 14,
  xForwardedHost: 15,
  xForwardedPort: 16,
  xRequestId: 17,
  traceparent: 18,
  tracestate: 19,
  cookie: 20,
  authorization: 21,
  proxyAuthenticate: 22,
  proxyAuthorization: 23,
  date: 24,
  server: 25,
  location: 26,
  setCookie: 27,
  strictTransportSecurity: 28,
  accept: 29,
  http2Settings: 30,
  /**
   * A known name with `_` in place of `-`, such as `X_Forwarded_For`. CGI and its successors give both spellings the same
   * variable, so an endpoint could take this field for the field that the proxy checked.
   */
  underscored: 31,
  contentType: 32,
  retryAfter: 33,
} as const;

/** The name of each known field in lower case, by id. The names of `FIELD.other` and `FIELD.underscored` are empty. */
export const FIELD_NAMES: readonly string[] = [
  '',
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'via',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-request-id',
  'traceparent',
  'tracestate',
  'cookie',
  'authorization',
  'proxy-authenticate',
  'proxy-authorization',
  'date',
  'server',
  'location',
  'set-cookie',
  'strict-transport-security',
  'accept',
  'http2-settings',
  '',
  'content-type',
  'retry-after',
];

/**
 * The fields of one parsed head, in the order of the head, as positions in `bytes`. A position is the index of a byte;
 * each end is exclusive. A name is a valid token, and a value has no whitespace around it. A parser uses one
 * instance for all of its heads.
 */
export class HeadFields {
  /** The array that the positions refer to: the array of the last call of the parser. */
  bytes: Uint8Array = new Uint8Array(0);
  /** The number of fields. Only the first `count` entries of the arrays are valid. */
  count = 0;
  /** The ids of the fields (`FIELD`). */
  readonly ids: Uint8Array = new Uint8Array(MAX_FIELDS);
  readonly nameStart: Int32Array = new Int32Array(MAX_FIELDS);
  readonly nameEnd: Int32Array = new Int32Array(MAX_FIELDS);
  readonly valueStart: Int32Array = new Int32Array(MAX_FIELDS);
  readonly valueEnd: Int32Array = new Int32Array(MAX_FIELDS);
  /** For each id below 32, the bit `1 << id` is set if the head has a field with this id. */
  seen = 0;
  /** For each id below 32, the bit `1 << id` is set if the head has several fields with this id. */
  repeated = 0;

  /** Returns the index of the first field with this id at or after `from`, or -1. */
  indexOf(id: number, from = 0): number {
    const { ids, count } = this;
    for (let index = from; index < count; index += 1) if (ids[index] === id) return index;
    return -1;
  }

  /** Returns the name of a field as it was sent. Allocates a string: only for tests and rare paths. */
  nameText(index: number): string {
    return latin1Text(this.bytes, this.nameStart[index] as number, this.nameEnd[index] as number);
  }

  /** Returns the value of a field, decoded as Latin-1. Allocates a string: only for tests and rare paths. */
  valueText(index: number): string {
    return latin1Text(this.bytes, this.valueStart[index] as number, this.valueEnd[index] as number);
  }
}

/** Returns the bytes from `start` to `end` (exclusive), decoded as Latin-1. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let at = start; at < end; at += 1) text += String.fromCharCode(bytes[at] as number);
  return text;
}

/** The names of all known fields without separators, and where the name of each id starts. */
const NAME_BYTES: Uint8Array = Uint8Array.from(FIELD_NAMES.join(''), (char) => char.charCodeAt(0));
const NAME_OFFSETS: Uint16Array = new Uint16Array(FIELD_NAMES.length);
const HYPHEN = 0x2d;
const UNDERSCORE = 0x5f;
const MIN_NAME_BYTES = 2;
const MAX_NAME_BYTES = 31;

/** The id of the only known name with this length, first byte and last but one byte (`bucketOf`), or 0. */
const ID_BY_BUCKET: Uint8Array = new Uint8Array((MAX_NAME_BYTES + 1) << 5);

/** Combines the length with the low five bits of a sum. The factor 5 gives each known name a bucket of its own. */
function bucketOf(length: number, first: number, lastButOne: number): number {
  return (length << 5) | ((first * 5 + lastButOne) & 31);
}

for (let id = 1, offset = 0; id < FIELD_NAMES.length; id += 1) {
  const name = FIELD_NAMES[id] as string;
  if (name === '') continue;
  const bucket = bucketOf(name.length, name.charCodeAt(0), name.charCodeAt(name.length - 2));
  if (ID_BY_BUCKET[bucket] !== 0) throw new Error(`field name "${name}" shares its bucket: change bucketOf`);
  ID_BY_BUCKET[bucket] = id;
  NAME_OFFSETS[id] = offset;
  offset += name.length;
}

/**
 * Returns the id of the name from `start` to `end` (exclusive), whatever its case, or `FIELD.other`. Also accepts names
 * inside a value, such as the options of Connection.
 */
export function fieldIdOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length < MIN_NAME_BYTES || length > MAX_NAME_BYTES) return FIELD.other;
  // `_` occurs in neither of the two bytes of the bucket, because no known name has `-` there.
  let id = ID_BY_BUCKET[bucketOf(length, bytes[start] as number, bytes[end - 2] as number)] as number;
  if (id === FIELD.other) return FIELD.other;
  const offset = (NAME_OFFSETS[id] as number) - start;
  for (let at = start; at < end; at += 1) {
    const byte = TOKEN_LOWER[bytes[at] as number];
    const expected = NAME_BYTES[at + offset];
    if (byte === expected) continue;
    if (byte !== UNDERSCORE || expected !== HYPHEN) return FIELD.other;
    id = FIELD.underscored;
  }
  return id;
}
