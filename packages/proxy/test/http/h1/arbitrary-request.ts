import fc from 'fast-check';
import { REQUEST_VECTORS } from './message-vectors.ts';

export interface ArbitraryRequest {
  readonly method: string;
  readonly target: string;
  readonly version: '1.0' | '1.1';
  /** The fields, with one Host and the framing. The values have no whitespace around them. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** The whitespace before each value. */
  readonly spaces: readonly string[];
  readonly body: string;
  /** The sizes of the chunks of a chunked body. */
  readonly chunks: readonly number[] | undefined;
  readonly trailers: readonly (readonly [name: string, value: string])[];
}

const textOf = (chars: string, constraints: fc.StringConstraints): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: fc.constantFrom(...chars) });

const TOKEN_CHARS = "!#$%&'*+-.^_`|~09azAZ";
const VALUE_CHARS = 'azAZ09 \t,;="\'/\\\x80\xff!~';
const PATH_CHARS = "azAZ09/-._~!$&'()*+,;=:@%[]";

// Names that the parser interprets come only from the cases below.
const fieldName = textOf(TOKEN_CHARS, { minLength: 1, maxLength: 12 }).map((name) => `x${name}`);
const field = fc.oneof(
  fc.tuple(
    fieldName,
    textOf(VALUE_CHARS, { maxLength: 30 }).map((value) => value.replace(/^[\t ]+|[\t ]+$/g, '')),
  ),
  fc.constantFrom(
    ['Accept', '*/*'] as const,
    ['COOKIE', 'a=b; c=d'] as const,
    ['user-agent', 'curl/8.0'] as const,
    ['X-Forwarded-For', '192.0.2.1'] as const,
  ),
);
const fields = fc.array(field, { maxLength: 8 });

const target = fc
  .tuple(textOf(PATH_CHARS, { maxLength: 20 }), fc.option(textOf(`${PATH_CHARS}?`, { maxLength: 20 })))
  .map(([path, query]) => `/${path}${query === null ? '' : `?${query}`}`);

/** A valid request, which may have a body with a length or in chunks. */
export const arbitraryRequest: fc.Arbitrary<ArbitraryRequest> = fc
  .record({
    method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND'),
    target: fc.oneof(
      target,
      target.map((path) => `http://shop.example:80${path}`),
    ),
    version: fc.constantFrom('1.0', '1.1'),
    host: fc.constantFrom(['Host', 'shop.example'] as const, ['hOST', 'SHOP.example:80'] as const),
    before: fields,
    after: fields,
    spaces: fc.array(fc.constantFrom('', ' ', '\t', ' \t '), { minLength: 20, maxLength: 20 }),
    body: fc.string({ unit: fc.constantFrom('a', '\r', '\n', '0', '\xff'), maxLength: 40 }),
    framing: fc.constantFrom('none', 'length', 'chunked'),
    sizes: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 }),
    trailers: fc.array(field, { maxLength: 2 }),
  })
  .map(({ host, before, after, framing, body, sizes, trailers, version, ...rest }) => {
    const isChunked = framing === 'chunked' && version === '1.1';
    const hasLength = framing === 'length';
    const framingFields: [string, string][] = hasLength ? [['Content-Length', String(body.length)]] : [];
    if (isChunked) framingFields.push(['Transfer-Encoding', 'chunked']);
    return {
      ...rest,
      version,
      fields: [...before, host, ...framingFields, ...after],
      body: isChunked || hasLength ? body : '',
      chunks: isChunked ? sizes : undefined,
      trailers: isChunked ? trailers : [],
    };
  });

/** Returns the bytes of a request as Latin-1 text. */
export function wireOf({ method, target: path, version, ...request }: ArbitraryRequest): string {
  const lines = request.fields.map(([name, value], index) => `${name}:${request.spaces[index] ?? ' '}${value}\r\n`);
  const head = `${method} ${path} HTTP/${version}\r\n${lines.join('')}\r\n`;
  if (request.chunks === undefined) return head + request.body;
  let wire = head;
  for (let at = 0, index = 0; at < request.body.length; index += 1) {
    const chunk = request.body.slice(at, at + (request.chunks[index % request.chunks.length] as number));
    wire += `${chunk.length.toString(16)}${index === 0 ? ';a="b"' : ''}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  const trailers = request.trailers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${wire}0\r\n${trailers.join('')}\r\n`;
}

const edit = fc.record({
  at: fc.nat(400),
  cut: fc.nat(2),
  put: fc.constantFrom('', '\r', '\n', '\r\n', ' ', ':', '\0', '0', ','),
});

/** Valid requests and known attacks, with a few bytes changed. */
export const hostileRequests: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    fc.oneof(
      arbitraryRequest.map((request) => Buffer.from(wireOf(request), 'latin1')),
      fc.constantFrom(...REQUEST_VECTORS.map(({ bytes }) => bytes).filter(({ length }) => length < 500)),
    ),
    fc.array(edit, { maxLength: 3 }),
  )
  .map(([bytes, edits]) =>
    edits.reduce<Uint8Array>(
      (all, { at, cut, put }) =>
        Buffer.concat([all.subarray(0, at), Buffer.from(put, 'latin1'), all.subarray(at + cut)]),
      bytes,
    ),
  );
