import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { RequestHeadParser } from '../../../src/http/h1/request-head.ts';
import { ResponseHeadParser } from '../../../src/http/h1/response-head.ts';
import { ByteWriter } from '../../../src/http/passes/byte-writer.ts';
import { ForwardedPeer } from '../../../src/http/passes/forwarded.ts';
import { HeadEdit } from '../../../src/http/passes/head-edit.ts';
import { writeRequestHead } from '../../../src/http/passes/head-writer.ts';
import type { HeaderFilter } from '../../../src/http/passes/header-filters.ts';
import { editRequest } from '../../../src/http/passes/request-passes.ts';
import { REQUEST_VECTORS } from '../h1/message-vectors.ts';
import {
  fieldPairs,
  headBytes,
  headLines,
  PEER,
  parseRequest,
  parseResponse,
  requestContext,
  responseContext,
  writeRequest,
  writeResponse,
} from './heads.ts';

type Pair = readonly [string, string];

/** Fields that the proxy drops, replaces or appends. All other fields must arrive as they were sent. */
const CONNECTION_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'upgrade',
  'http2-settings',
  'proxy-authenticate',
  'proxy-authorization',
];
const REQUEST_FIELDS = [
  ...CONNECTION_FIELDS,
  'host',
  'content-length',
  'transfer-encoding',
  'trailer',
  'expect',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-request-id',
  'traceparent',
  'tracestate',
];
const RESPONSE_FIELDS = [...CONNECTION_FIELDS, 'content-length', 'transfer-encoding', 'trailer', 'date'];
const KNOWN_END_TO_END = [
  'cookie',
  'authorization',
  'accept',
  'content-type',
  'set-cookie',
  'location',
  'server',
  'via',
];

/** Names that the proxy does not know. Connection can remove only these fields. */
const UNKNOWN = ['a', 'x-hop', 'sec-websocket-key', "!#$%&'*+-.^`|~"];

const names = fc
  .oneof(fc.constantFrom(...UNKNOWN), fc.constantFrom(...REQUEST_FIELDS.slice(1), ...KNOWN_END_TO_END))
  .chain((name) => fc.constantFrom(name, name.toUpperCase()));
const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
});
const values = fc.oneof(
  visible,
  fc.tuple(visible, fc.constantFrom(' ', '\t', '\u00e9', ', '), visible).map((parts) => parts.join('')),
  fc.constantFrom('', 'trailers', 'websocket', 'chunked', '5', '0', '12345678901234567890', 'close', 'keep-alive'),
);
/** Options of Connection: names of fields of all kinds, with empty members and odd whitespace. */
const connections = fc
  .array(fc.tuple(fc.constantFrom('', ' ', '\t '), fc.oneof(names, fc.constantFrom('close', 'upgrade', '', 'x y'))), {
    minLength: 1,
  })
  .map(
    (options) =>
      [
        'Connection',
        options
          .map((parts) => parts.join(''))
          .join(',')
          .trim(),
      ] as const,
  );
const fields = fc.array(
  fc.oneof({ weight: 4, arbitrary: fc.tuple(names, values) }, { weight: 1, arbitrary: connections }),
  {
    maxLength: 20,
  },
);
const spaces = fc.constantFrom('', ' ', '\t', '  ');
/** Field lines, some of which have other whitespace around the value. */
const fieldLines = fc
  .array(fc.tuple(fields, spaces, spaces), { maxLength: 2 })
  .map((groups) =>
    groups.flatMap(([pairs, before, after]) => pairs.map(([name, value]) => `${name}:${before}${value}${after}`)),
  );

const requests = fc
  .record({
    method: fc.constantFrom('GET', 'POST', 'HEAD', 'OPTIONS', 'X'),
    target: fc.constantFrom('/', '/a?b', 'http://shop.example/x', 'http://shop.example'),
    version: fc.constantFrom('1.0', '1.1', '1.1', '1.1'),
    host: fc.constantFrom([], ['Host: shop.example'], ['hOST:\tshop.example ']),
    lines: fieldLines,
    hostAt: fc.nat(20),
  })
  .map(({ method, target, version, host, lines, hostAt }) =>
    headBytes([`${method} ${target} HTTP/${version}`, ...lines.toSpliced(hostAt, 0, ...host)]),
  )
  .filter((bytes) => new RequestHeadParser().parse(bytes, 0, bytes.length) === 'done');

const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const requestOptions = fc.record({
  isTrusted: fc.boolean(),
  writesForwarded: fc.boolean(),
  hostRewrite: fc.constantFrom(undefined, 'inner.example:81'),
  targetRewrite: fc.constantFrom(undefined, '/rewritten'),
  headerFilters: fc.constantFrom([], [{ kind: 'set', name: 'X-Filter', value: 'f' } as const]),
});

test('a forwarded request has one Host, one framing and every end-to-end field as it was sent', () => {
  fc.assert(
    fc.property(
      requests,
      requestOptions,
      (bytes, { isTrusted, writesForwarded, hostRewrite, targetRewrite, ...options }) => {
        const received = parseRequest(bytes);
        const context = requestContext(received, {
          ...options,
          peer: new ForwardedPeer({ ...PEER, isTrusted, writesForwarded }),
          hostRewrite: hostRewrite === undefined ? undefined : bytesOf(hostRewrite),
          targetRewrite: targetRewrite === undefined ? undefined : bytesOf(targetRewrite),
        });
        const head = writeRequest(context);
        const sentPairs = ((): readonly Pair[] => {
          // More than 32 names in Connection are refused.
          if (head === undefined) return fc.pre(false) as never;
          const parsed = parseRequest(head);
          assert.equal(parsed.minorVersion, 1);
          assert.equal(parsed.methodId, received.methodId);
          assert.equal(parsed.framing.kind, received.framing.kind);
          assert.equal(parsed.framing.length, received.framing.length);
          return fieldPairs(parsed.fields);
        })();
        const receivedPairs = fieldPairs(received.fields);
        assert.equal(valuesOf(sentPairs, 'host').length, 1);
        assert.deepEqual(
          valuesOf(sentPairs, 'x-filter'),
          options.headerFilters.map(({ value }) => value),
        );
        assertConnectionFields(sentPairs, context.isWebSocket);
        assert.deepEqual(
          sentPairs.filter(
            ([name, value]) =>
              !isOneOf(REQUEST_FIELDS, name) && name !== 'x-filter' && value !== `1.${received.minorVersion} weir`,
          ),
          endToEnd(receivedPairs, REQUEST_FIELDS),
        );
        for (const name of ['x-request-id', 'traceparent', 'x-forwarded-for']) {
          assert.equal(valuesOf(sentPairs, name).length, 1, name);
        }
        const addresses = valuesOf(sentPairs, 'x-forwarded-for')[0]?.split(', ');
        assert.equal(addresses?.at(-1), PEER.address);
        if (!isTrusted) assert.equal(addresses?.length, 1);
        if (isTrusted) return;
        assert.equal(valuesOf(sentPairs, 'forwarded').length, writesForwarded ? 1 : 0);
      },
    ),
    { numRuns: 1_000 },
  );
});

/** Fields with which a client could lie about itself. */
const claims = fc.array(
  fc.tuple(
    fc
      .constantFrom('forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port')
      .chain((name) => fc.constantFrom(name, name.toUpperCase())),
    fc.oneof(values, fc.constantFrom('10.0.0.1', 'https', 'bank.example', '444', 'for=10.0.0.1;proto=https')),
    fc.nat(20),
  ),
  { maxLength: 5 },
);

test('an untrusted client does not influence what an endpoint believes about the client', () => {
  const believed = (bytes: Uint8Array): { readonly isHttps: boolean; readonly fields: readonly Pair[] } => {
    const context = requestContext(parseRequest(bytes));
    const head = writeRequest(context);
    if (head === undefined) return fc.pre(false) as never;
    const pairs = fieldPairs(parseRequest(head).fields);
    return {
      isHttps: context.isHttps,
      fields: pairs.filter(([name]) => /^(x[-_])?forwarded/.test(name)),
    };
  };
  fc.assert(
    fc.property(requests, claims, connections, (bytes, added, [, options]) => {
      const [line = '', ...lines] = headLines(bytes);
      const isClaim = (text: string): boolean => /^(x-)?forwarded/i.test(text);
      const honest = lines.filter((text) => !isClaim(text));
      const lying = added.reduce((all, [name, value, at]) => all.toSpliced(at, 0, `${name}: ${value}`), lines);
      const claimed = headBytes([line, ...lying, `Connection: ${options}`]);
      fc.pre(new RequestHeadParser().parse(claimed, 0, claimed.length) === 'done');
      assert.deepEqual(believed(claimed), believed(headBytes([line, ...honest])));
    }),
    { numRuns: 1_000 },
  );
});

test('each known request that the parser accepts is forwarded with the same method, host and framing', () => {
  let accepted = 0;
  for (const { id, bytes } of REQUEST_VECTORS) {
    const received = new RequestHeadParser();
    if (received.parse(bytes, 0, bytes.length) !== 'done') continue;
    const context = requestContext(received);
    const sent = parseRequest(writeRequest(context) as Uint8Array);
    const pairs = fieldPairs(sent.fields);
    assert.equal(sent.methodId, received.methodId, id);
    assert.equal(sent.framing.kind, received.framing.kind, id);
    assert.equal(sent.framing.length, received.framing.length, id);
    assert.equal(valuesOf(pairs, 'host').length, 1, id);
    assertConnectionFields(pairs, context.isWebSocket);
    accepted += 1;
  }
  assert.ok(accepted > 0);
});

const responses = fc
  .record({
    status: fc.constantFrom(100, 103, 200, 204, 206, 304, 404, 500),
    version: fc.constantFrom('1.0', '1.1'),
    isHead: fc.boolean(),
    lines: fieldLines,
  })
  .map(({ status, version, isHead, lines }) => ({
    bytes: headBytes([`HTTP/${version} ${status} Reason`, ...lines]),
    requestMethod: isHead ? METHOD.head : METHOD.get,
  }))
  .filter(({ bytes, requestMethod }) => {
    const parser = new ResponseHeadParser();
    parser.reset(requestMethod);
    return parser.parse(bytes, 0, bytes.length) === 'done';
  });

test('a forwarded response has one framing and every end-to-end field as it was sent', () => {
  fc.assert(
    fc.property(
      responses,
      fc.boolean(),
      fc.constantFrom(0, 1),
      ({ bytes, requestMethod }, closes, clientMinorVersion) => {
        const received = parseResponse(bytes, requestMethod);
        const context = responseContext(received, { closes, clientMinorVersion });
        const head = writeResponse(context);
        // More than 32 names in Connection are refused.
        if (head === undefined) return void fc.pre(false);
        const sent = parseResponse(head, requestMethod);
        const pairs = fieldPairs(sent.fields);
        assert.equal(sent.status, received.status);
        assert.equal(sent.framing.kind, context.bodyKind);
        assert.equal(sent.framing.length, received.framing.length);
        if (clientMinorVersion === 0) assert.notEqual(context.bodyKind, 'chunked');
        if (context.bodyKind === 'until-close') assert.equal(context.closes, true);
        const connection = context.closes ? ['close'] : clientMinorVersion === 0 ? ['keep-alive'] : [];
        assert.deepEqual(valuesOf(pairs, 'connection'), received.status < 200 ? [] : connection);
        assert.deepEqual(
          pairs.filter(
            ([name, value]) => !isOneOf(RESPONSE_FIELDS, name) && value !== `1.${received.minorVersion} weir`,
          ),
          endToEnd(fieldPairs(received.fields), RESPONSE_FIELDS),
        );
      },
    ),
    { numRuns: 1_000 },
  );
});

test('a writer without enough memory gives -1 and writes nothing beyond its memory', () => {
  fc.assert(
    fc.property(requests, fc.nat(100), (bytes, missing) => {
      const head = parseRequest(bytes);
      const edit = new HeadEdit();
      editRequest(edit, requestContext(head));
      fc.pre(edit.appended.at >= 0);
      const start = 10;
      const whole = new ByteWriter(new Uint8Array(65_536));
      whole.at = start;
      const end = writeRequestHead(whole, edit, head);
      const exact = new ByteWriter(new Uint8Array(end));
      exact.at = start;
      assert.equal(writeRequestHead(exact, edit, head), end);
      assert.deepEqual(exact.memory, whole.memory.slice(0, end));
      const small = new ByteWriter(new Uint8Array(Math.max(start, end - missing - 1)));
      small.at = start;
      assert.equal(writeRequestHead(small, edit, head), -1);
    }),
    { numRuns: 200 },
  );
});

test('a head whose appended lines exceed the memory of the edit is refused', () => {
  const head = parseRequest(headBytes(['GET / HTTP/1.1', 'Host: a']));
  const filters = (count: number): readonly HeaderFilter[] =>
    Array.from({ length: count }, () => ({ kind: 'add', name: 'X-Filter', value: 'x'.repeat(6_000) }));
  const write = (count: number): Uint8Array | undefined =>
    writeRequest(requestContext(head, { headerFilters: filters(count) }), 100_000);
  assert.notEqual(write(10), undefined);
  assert.equal(write(11), undefined);
});

/** Returns the fields that must arrive unchanged: those that neither the proxy manages nor Connection names. */
function endToEnd(pairs: readonly Pair[], managed: readonly string[]): readonly Pair[] {
  const options = valuesOf(pairs, 'connection').flatMap((value) => value.toLowerCase().split(','));
  const named = options.map((option) => option.replace(/^[ \t]+|[ \t]+$/g, ''));
  return pairs.filter(([name]) => !isOneOf(managed, name) && !(isOneOf(UNKNOWN, name) && isOneOf(named, name)));
}

/** Asserts that the only fields of one connection are those that the proxy writes itself. */
function assertConnectionFields(pairs: readonly Pair[], isWebSocket: boolean): void {
  const found = pairs.filter(([name]) => isOneOf(CONNECTION_FIELDS, name)).map((pair) => pair.join(': '));
  if (isWebSocket) assert.deepEqual(found, ['connection: Upgrade', 'upgrade: websocket']);
  else if (found.length > 0) assert.deepEqual(found, ['connection: TE', 'te: trailers']);
}

function valuesOf(pairs: readonly Pair[], name: string): readonly string[] {
  return pairs.filter(([other]) => other === name).map(([, value]) => value);
}

function isOneOf(list: readonly string[], name: string): boolean {
  return list.includes(name);
}
