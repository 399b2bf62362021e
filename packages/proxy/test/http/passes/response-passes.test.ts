import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { fieldLine } from '../../../src/http/passes/byte-writer.ts';
import { HeadEdit } from '../../../src/http/passes/head-edit.ts';
import { editResponse, RESPONSE_PASSES } from '../../../src/http/passes/response-passes.ts';
import { forwardResponse, headBytes, parseResponse, responseContext } from './heads.ts';

const OK = 'HTTP/1.1 200 OK';
const VIA = 'Via: 1.1 weir';
const DATE = 'Date: Sun, 06 Nov 1994 08:49:37 GMT';
const LENGTH = 'Content-Length: 3';
const CHUNKED = 'Transfer-Encoding: chunked';

test('the passes run in the documented order', () => {
  assert.deepEqual(
    RESPONSE_PASSES.map(({ name }) => name),
    [
      'dropConnectionFields',
      'checkWebSocket',
      'writeVia',
      'writeFraming',
      'writeDate',
      'writeHsts',
      'writeStickyCookie',
      'applyFilters',
      'writeConnection',
    ],
  );
});

test('a plain response keeps its fields in order and gets Via', () => {
  const fields = [
    'Server: nginx',
    'date: Mon, 07 Nov 1994 08:49:37 GMT',
    'Set-Cookie: a=b',
    'Set-Cookie: c=d',
    'ETag: "x"',
  ];
  assert.deepEqual(forwardResponse([OK, ...fields, LENGTH]), [OK, ...fields, VIA, LENGTH]);
});

test('fields of the connection to the endpoint are dropped', () => {
  const fields = ['Keep-Alive: timeout=5', 'Connection: keep-alive, X-Hop, set-cookie', 'x-hop: 1', 'Upgrade: h2c'];
  assert.deepEqual(forwardResponse([OK, ...fields, 'Proxy-Authenticate: Basic', 'Set-Cookie: a=b', LENGTH]), [
    OK,
    'Set-Cookie: a=b',
    VIA,
    LENGTH,
    DATE,
  ]);
});

describe('status line', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['HTTP/1.0 404 Nothing here', 'HTTP/1.1 404 Nothing here'],
    ['HTTP/1.1 200 ', 'HTTP/1.1 200 '],
    ['HTTP/1.1 200', 'HTTP/1.1 200 '],
  ];
  for (const [received, sent] of cases) {
    test(`"${received}" is sent as "${sent}"`, () => {
      const lines = forwardResponse([received, LENGTH, 'A: 1']);
      assert.deepEqual(lines, [
        sent,
        'A: 1',
        received.replace(/ .*/, '').replace('HTTP/', 'Via: ').concat(' weir'),
        LENGTH,
        DATE,
      ]);
    });
  }
});

describe('framing', () => {
  interface Case {
    readonly name: string;
    readonly lines: readonly string[];
    readonly requestMethod?: number;
    readonly clientMinorVersion?: number;
    readonly expected: readonly string[];
  }
  const cases: readonly Case[] = [
    { name: 'a length', lines: [OK, 'content-length: 03'], expected: [LENGTH] },
    { name: 'chunked', lines: [OK, 'Trailer: X', 'transfer-encoding: CHUNKED'], expected: ['Trailer: X', CHUNKED] },
    {
      name: 'chunked to HTTP/1.0',
      lines: [OK, 'Trailer: X', CHUNKED],
      clientMinorVersion: 0,
      expected: ['Connection: close'],
    },
    { name: 'until close', lines: [OK], expected: [CHUNKED] },
    { name: 'until close to HTTP/1.0', lines: [OK], clientMinorVersion: 0, expected: ['Connection: close'] },
    {
      name: 'a length to HTTP/1.0',
      lines: [OK, LENGTH],
      clientMinorVersion: 0,
      expected: [LENGTH, 'Connection: keep-alive'],
    },
    { name: 'HEAD with a length', lines: [OK, LENGTH], requestMethod: METHOD.head, expected: [LENGTH] },
    { name: 'HEAD with chunks', lines: [OK, 'Trailer: X', CHUNKED], requestMethod: METHOD.head, expected: [] },
    { name: 'HEAD without framing', lines: [OK], requestMethod: METHOD.head, expected: [] },
    { name: '304 with a length', lines: ['HTTP/1.1 304 Not Modified', LENGTH], expected: [LENGTH] },
    { name: '304 without framing', lines: ['HTTP/1.1 304 Not Modified'], expected: [] },
    { name: '204 with length 0', lines: ['HTTP/1.1 204 No Content', 'Content-Length: 0'], expected: [] },
    { name: '204 to HEAD', lines: ['HTTP/1.1 204 X', 'Content-Length: 0'], requestMethod: METHOD.head, expected: [] },
  ];
  for (const { name, lines, expected, ...options } of cases) {
    test(`${name}: the client gets ${expected.join(' | ') || 'no framing field'}`, () => {
      const sent = forwardResponse(lines, options).slice(1);
      assert.deepEqual(
        sent.filter((line) => line !== VIA && line !== DATE),
        expected,
      );
    });
  }

  test('the caller learns how to send the body and whether the connection ends', () => {
    const edit = (lines: readonly string[], clientMinorVersion: number): readonly [string, boolean] => {
      const context = responseContext(parseResponse(headBytes(lines)), { clientMinorVersion });
      editResponse(new HeadEdit(), context);
      return [context.bodyKind, context.closes];
    };
    assert.deepEqual(edit([OK], 1), ['chunked', false]);
    assert.deepEqual(edit([OK], 0), ['until-close', true]);
    assert.deepEqual(edit([OK, CHUNKED], 0), ['until-close', true]);
    assert.deepEqual(edit([OK, LENGTH], 0), ['length', false]);
    assert.deepEqual(edit(['HTTP/1.1 204 X'], 0), ['none', false]);
  });
});

describe('interim responses', () => {
  const additions = {
    hstsLine: fieldLine('Strict-Transport-Security', 'max-age=1'),
    stickyCookieLine: fieldLine('Set-Cookie', 'w=1'),
    headerFilters: [{ kind: 'add', name: 'X-Filter', value: '1' }],
  } as const;

  test('103 keeps its fields and gets none', () => {
    const lines = ['HTTP/1.1 103 Early Hints', 'Link: </a.css>; rel=preload', 'Connection: close'];
    assert.deepEqual(forwardResponse(lines, { ...additions, closes: true }), lines.slice(0, 2));
  });

  test('100 stays as it is', () => {
    assert.deepEqual(forwardResponse(['HTTP/1.1 100 Continue'], additions), ['HTTP/1.1 100 Continue']);
  });

  test('101 starts the WebSocket with cookie and filters', () => {
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Sec-WebSocket-Accept: x'];
    const connection = ['connection: upgrade, x-hop', 'upgrade: WebSocket', 'X-Hop: 1'];
    assert.deepEqual(forwardResponse([...lines, ...connection], { ...additions, isWebSocket: true }), [
      ...lines,
      'Set-Cookie: w=1',
      'X-Filter: 1',
      'Connection: Upgrade',
      'Upgrade: websocket',
    ]);
  });

  test('the caller learns which 101 starts a WebSocket', () => {
    const startsWebSocket = (isWebSocket: boolean, ...fields: readonly string[]): boolean => {
      const head = parseResponse(headBytes(['HTTP/1.1 101 Switching Protocols', ...fields]));
      const context = responseContext(head, { isWebSocket });
      editResponse(new HeadEdit(), context);
      return context.startsWebSocket;
    };
    assert.equal(startsWebSocket(true, 'Connection: upgrade', 'Upgrade: WebSocket'), true);
    assert.equal(startsWebSocket(false, 'Connection: upgrade', 'Upgrade: websocket'), false);
    assert.equal(startsWebSocket(true, 'Connection: upgrade', 'Upgrade: foo'), false);
    assert.equal(startsWebSocket(true, 'Upgrade: websocket'), false);
  });
});

describe('additions', () => {
  const added = (options: Parameters<typeof forwardResponse>[1], fields: readonly string[] = []): readonly string[] =>
    forwardResponse([OK, ...fields, LENGTH], options).filter((line) => ![OK, VIA, LENGTH, DATE].includes(line));
  const hstsLine = fieldLine('Strict-Transport-Security', 'max-age=31536000');

  test('HSTS replaces the field of the endpoint on encrypted connections', () => {
    assert.deepEqual(added({ hstsLine }, ['strict-transport-security: max-age=1']), [
      'Strict-Transport-Security: max-age=31536000',
    ]);
    assert.deepEqual(added({ hstsLine, isHttps: false }), []);
  });

  test('the sticky cookie follows the cookies of the endpoint', () => {
    assert.deepEqual(added({ stickyCookieLine: fieldLine('Set-Cookie', 'weir=x; HttpOnly') }, ['Set-Cookie: a=b']), [
      'Set-Cookie: a=b',
      'Set-Cookie: weir=x; HttpOnly',
    ]);
  });

  test('filters change the fields of endpoint and proxy', () => {
    const lines = forwardResponse([OK, 'Server: nginx', 'A: 1', LENGTH], {
      hstsLine,
      headerFilters: [
        { kind: 'remove', name: 'server' },
        { kind: 'set', name: 'date', value: 'never' },
        { kind: 'set', name: 'a', value: 'two' },
        { kind: 'add', name: 'a', value: 'three' },
        { kind: 'remove', name: 'strict-transport-security' },
      ],
    });
    assert.deepEqual(lines, [OK, VIA, LENGTH, 'date: never', 'a: two', 'a: three']);
  });

  test('the last response says that the connection is closed', () => {
    assert.deepEqual(added({ closes: true }), ['Connection: close']);
    assert.deepEqual(added({ closes: true, clientMinorVersion: 0 }), ['Connection: close']);
  });
});
