import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CONNECTION_OPTION } from '../../../src/http/passes/connection-options.ts';
import { ForwardedPeer } from '../../../src/http/passes/forwarded.ts';
import { HeadEdit } from '../../../src/http/passes/head-edit.ts';
import type { RequestContext } from '../../../src/http/passes/request-context.ts';
import { editRequest, REQUEST_PASSES } from '../../../src/http/passes/request-passes.ts';
import { forwardRequest, headBytes, headLines, PEER, parseRequest, requestContext, writeRequest } from './heads.ts';

const LINE = 'GET /a?b=c HTTP/1.1';
const HOST = 'Host: shop.example';
/** What every request of the untrusted client 192.0.2.7 gets after its own fields. */
const FORWARDED = [
  'X-Forwarded-For: 192.0.2.7',
  'X-Forwarded-Proto: https',
  'X-Forwarded-Port: 443',
  'X-Forwarded-Host: shop.example',
];
const VIA = 'Via: 1.1 weir';
const REQUEST_ID = 'X-Request-Id: 01010101010101010101010101010101';
const TRACEPARENT = 'traceparent: 00-01010101010101010101010101010101-0202020202020202-01';
const ADDED = [...FORWARDED, VIA, REQUEST_ID, TRACEPARENT];
const TRUSTED = { peer: new ForwardedPeer({ ...PEER, isTrusted: true }) };
const VALID_TRACE = 'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** Asserts what an endpoint gets of a request with these fields beside Host, without what every request gets. */
function assertForwards(fields: readonly string[], expected: readonly string[]): void {
  const lines = forwardRequest([LINE, HOST, ...fields]);
  assert.deepEqual(
    lines.filter((line) => !ADDED.includes(line)),
    [LINE, HOST, ...expected],
  );
}

test('the passes run in the documented order', () => {
  assert.deepEqual(
    REQUEST_PASSES.map(({ name }) => name),
    [
      'dropConnectionFields',
      'keepWebSocketUpgrade',
      'keepTrailersOption',
      'checkExpectation',
      'writeXForwarded',
      'writeForwarded',
      'hideEndpointCookie',
      'rewriteTarget',
      'writeHost',
      'writeVia',
      'writeRequestId',
      'writeTraceContext',
      'writeFraming',
      'applyFilters',
    ],
  );
});

test('a plain request keeps its fields in order and gets the fields of the proxy', () => {
  const fields = ['Accept: */*', 'User-Agent: curl/8.5.0', 'Cookie: a=b', 'X-Empty:', 'cookie: c=d'];
  assert.deepEqual(forwardRequest([LINE, HOST, ...fields]), [LINE, HOST, ...fields, ...ADDED]);
});

describe('fields of one connection', () => {
  const cases: readonly { readonly name: string; readonly fields: string[]; readonly expected: string[] }[] = [
    { name: 'keep-alive', fields: ['Connection: keep-alive', 'Keep-Alive: timeout=5', 'A: 1'], expected: ['A: 1'] },
    { name: 'Proxy-Connection', fields: ['Proxy-Connection: keep-alive', 'A: 1'], expected: ['A: 1'] },
    {
      name: 'named fields',
      fields: ['X-Hop: 1', 'Connection: x-hOp,, close ,\tb', 'B: 2', 'C: 3'],
      expected: ['C: 3'],
    },
    { name: 'several Connection fields', fields: ['A: 1', 'connection: a', 'CONNECTION: B', 'B: 2'], expected: [] },
    {
      name: 'fields for a proxy of the client',
      fields: ['Proxy-Authorization: Basic eDp5', 'Proxy-Authenticate: Basic', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
      expected: [],
    },
    {
      name: 'end-to-end fields that Connection names',
      fields: [
        'Connection: host, cookie, authorization, content-type, accept',
        'Cookie: a=b',
        'Authorization: Basic eDp5',
      ],
      expected: ['Cookie: a=b', 'Authorization: Basic eDp5'],
    },
    {
      name: 'fields of the proxy that Connection names',
      fields: ['Connection: x-forwarded-for, x-forwarded-host, via, x-request-id, traceparent, forwarded'],
      expected: [],
    },
    { name: 'a malformed option', fields: ['Connection: a b, =', 'A: 1'], expected: ['A: 1'] },
    { name: 'TE with trailers', fields: ['TE: gzip;q=0.5, Trailers'], expected: ['Connection: TE', 'TE: trailers'] },
    { name: 'TE without trailers', fields: ['Connection: TE', 'TE: gzip, trailers;q=1'], expected: [] },
    { name: 'Upgrade to HTTP/2', fields: ['Connection: Upgrade', 'Upgrade: h2c'], expected: [] },
    { name: 'Upgrade without the option', fields: ['Upgrade: websocket'], expected: [] },
    {
      name: 'Upgrade to WebSocket',
      fields: [
        'Upgrade: h2c, WebSocket',
        'Sec-WebSocket-Version: 13',
        'TE: trailers',
        'Connection: keep-alive, upgrade',
      ],
      expected: ['Sec-WebSocket-Version: 13', 'Connection: Upgrade', 'Upgrade: websocket'],
    },
    {
      name: 'Upgrade to WebSocket with a body',
      fields: ['Connection: Upgrade', 'Upgrade: websocket', 'Content-Length: 3'],
      expected: ['Content-Length: 3'],
    },
  ];
  for (const { name, fields, expected } of cases) {
    test(`${name}: the endpoint gets ${expected.join(' | ') || 'nothing'}`, () => assertForwards(fields, expected));
  }

  test('a request of HTTP/1.0 or with another method starts no WebSocket', () => {
    const fields = [HOST, 'Connection: Upgrade', 'Upgrade: websocket'];
    for (const line of ['GET / HTTP/1.0', 'POST / HTTP/1.1']) {
      const context = requestContext(parseRequest(headBytes([line, ...fields])));
      editRequest(new HeadEdit(), context);
      assert.equal(context.isWebSocket, false, line);
    }
  });

  test('the caller learns the options of the client', () => {
    const options = (...connection: string[]): number => {
      const context = requestContext(parseRequest(headBytes([LINE, HOST, ...connection])));
      editRequest(new HeadEdit(), context);
      return context.connectionOptions;
    };
    assert.equal(options(), 0);
    assert.equal(options('Connection: Close'), CONNECTION_OPTION.close);
    assert.equal(options('Connection: x, keep-alive', 'Connection: upgrade'), 6);
  });

  test('a head that names more than 32 fields in Connection is refused', () => {
    const head = (count: number): Uint8Array =>
      headBytes([LINE, HOST, `Connection: ${Array.from({ length: count }, (_, index) => `x${index}`).join()}`]);
    assert.ok(writeRequest(requestContext(parseRequest(head(32)))) !== undefined);
    assert.equal(writeRequest(requestContext(parseRequest(head(33)))), undefined);
  });
});

describe('Expect', () => {
  const cases: readonly (readonly [string, string, readonly string[], RequestContext['expectation'], boolean])[] = [
    ['100-continue', '1.1', ['Expect: 100-Continue', 'Content-Length: 3'], 'continue', true],
    ['100-continue of HTTP/1.0', '1.0', ['Expect: 100-continue', 'Content-Length: 3'], 'none', false],
    ['100-continue without a body', '1.1', ['Expect: 100-continue'], 'none', false],
    ['another value', '1.1', ['Expect: y 100-continue', 'Content-Length: 3'], 'unknown', true],
    ['two fields', '1.1', ['Expect: 100-continue', 'Expect: 100-continue', 'Content-Length: 3'], 'unknown', true],
    ['no field', '1.1', ['Content-Length: 3'], 'none', false],
  ];
  for (const [name, version, fields, expectation, isKept] of cases) {
    test(`${name}: the expectation is "${expectation}"`, () => {
      const context = requestContext(parseRequest(headBytes([`POST / HTTP/${version}`, HOST, ...fields])));
      const lines = headLines(writeRequest(context) as Uint8Array);
      assert.equal(context.expectation, expectation);
      assert.equal(
        lines.some((line) => line.startsWith('Expect')),
        isKept,
      );
    });
  }
});

describe('request line and Host', () => {
  const cases: readonly { readonly name: string; readonly lines: string[]; readonly expected: string[] }[] = [
    { name: 'HTTP/1.0 becomes HTTP/1.1', lines: ['GET /x HTTP/1.0', HOST], expected: ['GET /x HTTP/1.1', HOST] },
    {
      name: 'a missing Host becomes the address of the listener',
      lines: ['GET /x HTTP/1.0'],
      expected: ['GET /x HTTP/1.1', 'Host: 198.51.100.1:443'],
    },
    {
      name: 'absolute-form becomes origin-form',
      lines: ['GET http://shop.example:81/x?y HTTP/1.1', 'A: 1', 'Host: shop.example:81'],
      expected: ['GET /x?y HTTP/1.1', 'A: 1', 'Host: shop.example:81'],
    },
    {
      name: 'absolute-form without a path gets a slash',
      lines: ['GET http://shop.example?y HTTP/1.1', HOST],
      expected: ['GET /?y HTTP/1.1', HOST],
    },
    {
      name: 'absolute-form of HTTP/1.0 gives the Host',
      lines: ['GET http://shop.example:81/x HTTP/1.0', 'A: 1'],
      expected: ['GET /x HTTP/1.1', 'Host: shop.example:81', 'A: 1'],
    },
    {
      name: 'OPTIONS of absolute-form without a path becomes asterisk-form',
      lines: ['OPTIONS http://shop.example HTTP/1.1', HOST],
      expected: ['OPTIONS * HTTP/1.1', HOST],
    },
    { name: 'asterisk-form is kept', lines: ['OPTIONS * HTTP/1.1', HOST], expected: ['OPTIONS * HTTP/1.1', HOST] },
  ];
  for (const { name, lines, expected } of cases) {
    test(name, () => assert.deepEqual(forwardRequest(lines).slice(0, expected.length), expected));
  }

  test('a missing Host becomes the IPv6 address of the listener in brackets', () => {
    const peer = new ForwardedPeer({ ...PEER, listener: { address: '2001:db8::1', port: 8_080 } });
    assert.equal(forwardRequest(['GET /x HTTP/1.0'], { peer })[1], 'Host: [2001:db8::1]:8080');
  });

  test('the rewrites of the route replace target and Host, and X-Forwarded-Host keeps the host of the client', () => {
    const lines = forwardRequest([LINE, 'A: 1', HOST, 'B: 2'], {
      hostRewrite: Buffer.from('inner.example:8080'),
      targetRewrite: Buffer.from('/?b=c'),
    });
    assert.deepEqual(lines, ['GET /?b=c HTTP/1.1', 'Host: inner.example:8080', 'A: 1', 'B: 2', ...ADDED]);
  });
});

describe('Via', () => {
  test('the proxy follows the proxies that the request names', () => {
    const lines = forwardRequest([LINE, HOST, 'Via: 1.1 a', 'via: 2 b']);
    assert.deepEqual(
      lines.filter((line) => /^via/i.test(line)),
      ['Via: 1.1 a', 'via: 2 b', 'Via: 1.1 weir'],
    );
  });
  test('Via names the version of the client', () => {
    assert.ok(forwardRequest(['GET / HTTP/1.0', HOST]).includes('Via: 1.0 weir'));
  });
});

describe('X-Request-Id', () => {
  const requestIds = (fields: string[], options = {}): readonly string[] =>
    forwardRequest([LINE, HOST, ...fields], options).filter((line) => /^x-request-id/i.test(line));
  const cases: readonly { readonly name: string; readonly fields: string[]; readonly isKept: boolean }[] = [
    { name: 'a UUID', fields: ['x-request-id: 7b9ad5a2-6f3f-4e5a-9a43-2a0f6cc7a3a1'], isKept: true },
    { name: '128 characters', fields: [`X-Request-Id: ${'~'.repeat(128)}`], isKept: true },
    { name: '129 characters', fields: [`X-Request-Id: ${'a'.repeat(129)}`], isKept: false },
    { name: 'a space', fields: ['X-Request-Id: a b'], isKept: false },
    { name: 'a character above ASCII', fields: ['X-Request-Id: \u00e9'], isKept: false },
    { name: 'an empty value', fields: ['X-Request-Id: '], isKept: false },
    { name: 'two fields', fields: ['X-Request-Id: a', 'X-Request-Id: b'], isKept: false },
    { name: 'no field', fields: [], isKept: false },
  ];
  for (const { name, fields, isKept } of cases) {
    test(`${name} is ${isKept ? 'kept' : 'replaced'}`, () =>
      assert.deepEqual(requestIds(fields), isKept ? fields : [REQUEST_ID]));
  }
  test('any single value of a trusted peer is kept', () => {
    assert.deepEqual(requestIds(['X-Request-Id: a b'], TRUSTED), ['X-Request-Id: a b']);
  });
});

describe('traceparent', () => {
  const traces = (fields: string[]): readonly string[] =>
    forwardRequest([LINE, HOST, ...fields]).filter((line) => /^trace/i.test(line));
  const valid = {
    'version 00': VALID_TRACE,
    'other flags': VALID_TRACE.replace(/01$/, 'ff'),
    'a later version': VALID_TRACE.replace(' 00-', ' cc-'),
    'a later version with more parts': VALID_TRACE.replace(' 00-', ' cc-').concat('-what'),
  };
  const invalid = {
    'version ff': VALID_TRACE.replace(' 00-', ' ff-'),
    'version 00 with more parts': `${VALID_TRACE}-what`,
    'a later version with a longer flag': VALID_TRACE.replace(' 00-', ' cc-').concat('0'),
    'an upper-case digit': VALID_TRACE.replace('4bf', '4BF'),
    'a zero trace id': VALID_TRACE.replace(/-[^-]{32}-/, `-${'0'.repeat(32)}-`),
    'a zero parent id': VALID_TRACE.replace(/-[^-]{16}-/, `-${'0'.repeat(16)}-`),
    'a missing part': VALID_TRACE.slice(0, -3),
    'another separator': VALID_TRACE.replace('36-00', '36.00'),
    'an empty value': 'traceparent:',
  };
  for (const [name, line] of Object.entries(valid)) {
    test(`${name} is kept with tracestate`, () => {
      assert.deepEqual(traces([line, 'tracestate: a=1', 'tracestate: b=2']), [
        line,
        'tracestate: a=1',
        'tracestate: b=2',
      ]);
    });
  }
  for (const [name, line] of Object.entries(invalid)) {
    test(`${name} starts a new trace without tracestate`, () => {
      assert.deepEqual(traces([line, 'tracestate: a=1']), [TRACEPARENT]);
    });
  }
  test('two fields start a new trace', () => assert.deepEqual(traces([VALID_TRACE, VALID_TRACE]), [TRACEPARENT]));
  test('tracestate without traceparent is dropped', () => assert.deepEqual(traces(['tracestate: a=1']), [TRACEPARENT]));
  test('a new trace beside a request id of the client has an id of its own', () => {
    assert.deepEqual(traces(['X-Request-Id: mine']), [TRACEPARENT]);
  });
});

describe('framing', () => {
  const cases: readonly { readonly name: string; readonly fields: string[]; readonly expected: string[] }[] = [
    { name: 'none', fields: ['Trailer: X'], expected: [] },
    { name: 'a length', fields: ['Content-Length: 007'], expected: ['Content-Length: 7'] },
    { name: 'length 0', fields: ['content-length: 0'], expected: ['Content-Length: 0'] },
    {
      name: 'the largest length',
      fields: ['Content-Length: 9007199254740991'],
      expected: ['Content-Length: 9007199254740991'],
    },
    {
      name: 'chunked',
      fields: ['Trailer: X', 'Transfer-Encoding: Chunked'],
      expected: ['Trailer: X', 'Transfer-Encoding: chunked'],
    },
    {
      name: 'a length that Connection names',
      fields: ['Content-Length: 5', 'Connection: content-length'],
      expected: ['Content-Length: 5'],
    },
  ];
  for (const { name, fields, expected } of cases) {
    test(`${name} is written as ${expected.join(' | ') || 'nothing'}`, () => assertForwards(fields, expected));
  }
});

describe('header filters', () => {
  test('filters have the last word about the fields of client and proxy', () => {
    const lines = forwardRequest([LINE, HOST, 'A: 1', 'a: 2', 'B: 3', 'C: 4'], {
      headerFilters: [
        { kind: 'set', name: 'A', value: 'set' },
        { kind: 'add', name: 'b', value: 'added' },
        { kind: 'remove', name: 'C' },
        { kind: 'set', name: 'x-forwarded-proto', value: 'http' },
        { kind: 'remove', name: 'Traceparent' },
        { kind: 'remove', name: 'X-Forwarded' },
      ],
    });
    assert.deepEqual(lines, [
      LINE,
      HOST,
      'B: 3',
      'X-Forwarded-For: 192.0.2.7',
      'X-Forwarded-Port: 443',
      'X-Forwarded-Host: shop.example',
      VIA,
      REQUEST_ID,
      'A: set',
      'b: added',
      'x-forwarded-proto: http',
    ]);
  });
});
