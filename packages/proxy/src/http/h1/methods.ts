/** The ids of the request methods that the proxy knows. The id of all other methods is `METHOD.other`. */
export const METHOD = {
  other: 0,
  get: 1,
  head: 2,
  post: 3,
  put: 4,
  delete: 5,
  options: 6,
  patch: 7,
  trace: 8,
  connect: 9,
} as const;

/** The name of each method, by id. The name of `METHOD.other` is empty. */
export const METHOD_NAMES: readonly string[] = [
  '',
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'CONNECT',
];

const IDEMPOTENT_METHODS: ReadonlySet<number> = new Set([
  METHOD.get,
  METHOD.head,
  METHOD.put,
  METHOD.delete,
  METHOD.options,
  METHOD.trace,
]);

/** Whether a request with this method may be repeated (RFC 9110 §9.2.2). */
export function isIdempotent(method: number): boolean {
  return IDEMPOTENT_METHODS.has(method);
}

/** The id of the only method with this length and these low five bits of the first byte, or 0. */
const ID_BY_BUCKET: Uint8Array = new Uint8Array(8 << 5);
for (const [id, name] of METHOD_NAMES.entries()) ID_BY_BUCKET[(name.length << 5) | (name.charCodeAt(0) & 31)] = id;

/** Returns the id of the method from `start` to `end` (exclusive). RFC 9110 §9.1: methods are case-sensitive. */
export function methodIdOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length > 7) return METHOD.other;
  const id = ID_BY_BUCKET[(length << 5) | ((bytes[start] as number) & 31)] as number;
  const name = METHOD_NAMES[id] as string;
  for (let at = 0; at < name.length; at += 1) {
    if (bytes[start + at] !== name.charCodeAt(at)) return METHOD.other;
  }
  return id;
}
