import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { FIELD, latin1Text } from '../../../src/http/h1/head-fields.ts';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { DecodedHead, type HeadKind } from '../../../src/http/h2/decoded-head.ts';
import { HpackDecoder } from '../../../src/http/h2/hpack/decoder.ts';
import { HpackEncoder } from '../../../src/http/h2/hpack/encoder.ts';
import { ByteWriter } from '../../../src/http/passes/byte-writer.ts';
import { ForwardedPeer } from '../../../src/http/passes/forwarded.ts';
import { HeadEdit } from '../../../src/http/passes/head-edit.ts';
import { writeRequestHead } from '../../../src/http/passes/head-writer.ts';
import { editRequest } from '../../../src/http/passes/request-passes.ts';

type Field = readonly [name: string, value: string];

/** The head of a GET, with `changes` in place of or behind its pseudo-fields. A value of undefined removes a field. */
function request(changes: Readonly<Record<string, string | undefined>> = {}, ...fields: readonly Field[]): Field[] {
  const pseudo = { ':method': 'GET', ':scheme': 'https', ':authority': 'example.com', ':path': '/', ...changes };
  return [...Object.entries(pseudo).filter((entry): entry is [string, string] => entry[1] !== undefined), ...fields];
}

interface Options {
  readonly kind?: HeadKind;
  readonly endsStream?: boolean;
  readonly method?: number;
  readonly head?: DecodedHead;
}

/** Encodes and decodes fields. */
function decode(
  fields: readonly Field[],
  { kind = 'request', endsStream = true, method = METHOD.get, head = new DecodedHead() }: Options = {},
) {
  const block = new Uint8Array(1_000_000);
  const encoder = new HpackEncoder();
  encoder.begin(block, 0);
  for (const [name, value] of fields) {
    const bytes = Buffer.from(name + value, 'latin1');
    encoder.field(bytes, 0, name.length, name.length, bytes.length);
  }
  head.begin(kind, method);
  const decoded = new HpackDecoder().decode(block, 0, encoder.position, head);
  return { head, result: decoded === 'done' ? head.finish(endsStream) : decoded };
}

const many = (count: number, value = ''): Field[] =>
  Array.from({ length: count }, (_, index): Field => [`x-${index}`, value]);
const connect = { ':method': 'CONNECT', ':scheme': undefined, ':path': undefined };
const webSocket = { ':method': 'CONNECT', ':protocol': 'websocket' };

const requestCases: readonly (readonly [name: string, fields: readonly Field[], result: string])[] = [
  ['a complete head', request(), 'done'],
  ['the method OPTIONS of the whole server', request({ ':method': 'OPTIONS', ':path': '*' }), 'done'],
  ['a Host that equals :authority', request({}, ['host', 'EXAMPLE.com']), 'done'],
  ['a Host in place of :authority', request({ ':authority': undefined }, ['host', 'example.com']), 'done'],
  ['TE with trailers', request({}, ['te', 'trailers']), 'done'],
  ['99 fields besides the host', request({}, ...many(99)), 'done'],
  ['a missing :method', request({ ':method': undefined }), 'malformed'],
  ['an empty :method', request({ ':method': '' }), 'malformed'],
  ['a missing :scheme', request({ ':scheme': undefined }), 'malformed'],
  ['a missing :path', request({ ':path': undefined }), 'malformed'],
  ['an empty :path', request({ ':path': '' }), 'malformed'],
  ['a second :path', [...request(), [':path', '/b']], 'malformed'],
  [':status', request({ ':status': '200' }), 'malformed'],
  ['a pseudo-field behind a field', [['x', 'y'], ...request()], 'malformed'],
  ['Connection', request({}, ['connection', 'close']), 'malformed'],
  ['Keep-Alive', request({}, ['keep-alive', '1']), 'malformed'],
  ['Proxy-Connection', request({}, ['proxy-connection', 'close']), 'malformed'],
  ['Transfer-Encoding', request({}, ['transfer-encoding', 'chunked']), 'malformed'],
  ['Upgrade', request({}, ['upgrade', 'h2c']), 'malformed'],
  ['TE with another coding', request({}, ['te', 'trailers, gzip']), 'malformed'],
  ['a Host that differs from :authority', request({}, ['host', 'other.com']), 'malformed'],
  ['a Host of the same length as :authority', request({}, ['host', 'example.net']), 'malformed'],
  ['Content-Length without a body', request({}, ['content-length', '1']), 'malformed'],
  ['two Content-Lengths', request({}, ['content-length', '0'], ['content-length', '0']), 'malformed'],
  ['Content-Length that is no number', request({}, ['content-length', '+0']), 'malformed'],
  ['CONNECT with :path', request({ ':method': 'CONNECT', ':scheme': undefined }), 'malformed'],
  ['CONNECT without :authority', request({ ...connect, ':authority': undefined }), 'malformed'],
  [':protocol without CONNECT', request({ ':protocol': 'websocket' }), 'malformed'],
  ['extended CONNECT without :path', request({ ...webSocket, ':path': undefined }), 'malformed'],
  ['extended CONNECT for a WebSocket', request(webSocket), 'done'],
  ['CONNECT', request(connect), 'connect-not-supported'],
  ['extended CONNECT for another protocol', request({ ...webSocket, ':protocol': 'x' }), 'connect-not-supported'],
  ['neither :authority nor Host', request({ ':authority': undefined }), 'missing-host'],
  ['two Hosts', request({}, ['host', 'example.com'], ['host', 'example.com']), 'several-hosts'],
  ['userinfo in :authority', request({ ':authority': 'a@example.com' }), 'invalid-host'],
  ['an empty :authority', request({ ':authority': '' }), 'invalid-host'],
  ['a port above 65535', request({ ':authority': 'example.com:70000' }), 'invalid-host'],
  ['a long :authority', request({ ':authority': 'a'.repeat(300) }), 'invalid-host'],
  ['another scheme', request({ ':scheme': 'ftp' }), 'invalid-target'],
  ['a :path in absolute-form', request({ ':path': 'https://example.com/' }), 'invalid-target'],
  ['a :path without a slash', request({ ':path': 'a' }), 'invalid-target'],
  ['* with GET', request({ ':path': '*' }), 'invalid-target'],
  ['a space in :path', request({ ':path': '/a b' }), 'invalid-request-line'],
  ['a version in :path', request({ ':path': '/a HTTP/1.1' }), 'invalid-request-line'],
  ['a fragment in :path', request({ ':path': '/a#b' }), 'invalid-target'],
  ['a space in :method', request({ ':method': 'GET /' }), 'invalid-request-line'],
  ['a long :path', request({ ':path': `/${'a'.repeat(8_192)}` }), 'target-too-long'],
  ['a long :method', request({ ':method': 'A'.repeat(65) }), 'method-too-long'],
  ['a known name with an underscore', request({}, ['x_forwarded_for', 'a']), 'ambiguous-field-name'],
  ['100 fields besides the host', request({}, ...many(100)), 'too-many-fields'],
  ['a field above the limit', request({}, ['x', 'a'.repeat(16_384)]), 'field-too-large'],
  ['a list of fields above the limit', request({}, ...many(3, 'a'.repeat(12_000))), 'head-too-large'],
  ['a list of fields far above the limit', request({}, ...many(12, 'a'.repeat(12_000))), 'too-large'],
];

const responseCases: readonly (readonly [name: string, fields: readonly Field[], options: Options, result: string])[] =
  [
    ['a status', [[':status', '200']], {}, 'done'],
    ['a status without a name', [[':status', '299']], {}, 'done'],
    ['an interim response', [[':status', '103']], { endsStream: false }, 'done'],
    [
      'Content-Length in a response to HEAD',
      [
        [':status', '200'],
        ['content-length', '5'],
      ],
      { method: METHOD.head },
      'done',
    ],
    [
      'Content-Length in a 304',
      [
        [':status', '304'],
        ['content-length', '5'],
      ],
      {},
      'done',
    ],
    ['an interim response that ends the stream', [[':status', '103']], {}, 'malformed'],
    ['no status', [['x', 'y']], {}, 'malformed'],
    [
      'a pseudo-field of requests',
      [
        [':status', '200'],
        [':path', '/'],
      ],
      {},
      'malformed',
    ],
    ['the status 101', [[':status', '101']], { endsStream: false }, 'malformed'],
    ['a status above 599', [[':status', '600']], {}, 'malformed'],
    ['a status of two digits', [[':status', '20']], {}, 'malformed'],
    ['a status with a letter', [[':status', '20a']], {}, 'malformed'],
    [
      'Connection',
      [
        [':status', '200'],
        ['connection', 'close'],
      ],
      {},
      'malformed',
    ],
    [
      'Content-Length without a body',
      [
        [':status', '200'],
        ['content-length', '5'],
      ],
      {},
      'malformed',
    ],
  ];

suite('DecodedHead', () => {
  for (const [name, fields, result] of requestCases) {
    test(`takes a request with ${name} as ${result}`, () => {
      assert.equal(decode(fields).result, result);
    });
  }

  for (const [name, fields, options, result] of responseCases) {
    test(`takes a response with ${name} as ${result}`, () => {
      assert.equal(decode(fields, { kind: 'response', ...options }).result, result);
    });
  }

  test('shows nothing of the request before when a request is refused', () => {
    const head = new DecodedHead();
    decode(request({ ':path': '/secret' }, ['accept', 'a']), { head });
    decode([['accept', 'secret']], { head, kind: 'trailers' });
    assert.equal(decode(request({ ':method': 'HEAD', ':authority': undefined }), { head }).result, 'missing-host');
    assert.deepEqual([head.methodId, head.methodEnd, head.targetEnd, head.hostEnd], [METHOD.head, 0, 0, 0]);
    assert.deepEqual([head.fields.count, head.fields.ids[0], head.fields.valueText(0)], [1, FIELD.host, '']);
  });

  test('takes no pseudo-field and no connection field in trailers', () => {
    assert.equal(decode([['checksum', 'a']], { kind: 'trailers' }).result, 'done');
    assert.equal(decode([[':path', '/']], { kind: 'trailers' }).result, 'malformed');
    assert.equal(decode([['upgrade', 'a']], { kind: 'trailers' }).result, 'malformed');
  });

  test('finds out the framing from the end of the stream and Content-Length', () => {
    const framingOf = (fields: readonly Field[], endsStream: boolean) => {
      const { kind, length } = decode(fields, { endsStream }).head.framing;
      return [kind, length];
    };
    assert.deepEqual(framingOf(request(), true), ['none', 0]);
    assert.deepEqual(framingOf(request(), false), ['chunked', 0]);
    assert.deepEqual(framingOf(request({}, ['content-length', '7']), false), ['length', 7]);
    assert.deepEqual(framingOf(request({}, ['content-length', '0']), true), ['length', 0]);
    assert.deepEqual(framingOf(request(webSocket), false), ['none', 0]);
  });

  test('joins the parts of Cookie behind the other fields', () => {
    const fields: Field[] = [
      ['a', '1'],
      ['cookie', 'x=1'],
      ['b', '2'],
      ['cookie', 'y=2'],
      ['cookie', 'z=3'],
      ['c', ''],
    ];
    const { head } = decode(request({}, ...fields));
    const text = latin1Text(head.memory, head.methodStart, head.at);
    assert.equal(text, 'GET / HTTP/1.1\r\nhost: example.com\r\na: 1\r\nb: 2\r\nc: \r\ncookie: x=1; y=2; z=3\r\n');
    const names = Array.from({ length: head.fields.count }, (_, index) => [
      head.fields.nameText(index),
      head.fields.valueText(index),
    ]);
    assert.deepEqual(names, [
      ['host', 'example.com'],
      ['a', '1'],
      ['b', '2'],
      ['c', ''],
      ['cookie', 'x=1; y=2; z=3'],
    ]);
  });

  test('is edited by the request passes and written like a head of HTTP/1.1', () => {
    const { head } = decode(
      request({ ':path': '/a?b', ':authority': 'Example.com:8443' }, ['accept', '*/*'], ['te', 'trailers'], ['x', 'y']),
    );
    const edit = new HeadEdit();
    editRequest(edit, {
      head,
      peer: new ForwardedPeer({
        address: '192.0.2.1',
        listener: { address: '192.0.2.9', port: 443 },
        isTls: true,
        isTrusted: false,
        writesForwarded: false,
      }),
      hostRewrite: undefined,
      targetRewrite: undefined,
      filters: undefined,
      endpointCookie: undefined,
      cookieEndpoint: undefined,
      webSocketKeyLine: undefined,
      fillRandom: (memory) => memory.fill(7),
      connectionOptions: 0,
      isHttps: false,
      isWebSocket: false,
      expectation: 'none',
      isRequestIdMade: false,
      requestId: new Uint8Array(16),
    });
    const writer = new ByteWriter(new Uint8Array(4_096));
    writeRequestHead(writer, edit, head);
    const lines = latin1Text(writer.memory, 0, writer.at).split('\r\n');
    assert.deepEqual(lines.slice(0, 4), ['GET /a?b HTTP/1.1', 'host: Example.com:8443', 'accept: */*', 'x: y']);
    assert.ok(lines.includes('X-Forwarded-For: 192.0.2.1'));
    assert.ok(lines.includes('TE: trailers'));
    assert.deepEqual([head.methodId, head.port, head.isHttps], [METHOD.get, 8443, true]);
  });
});
