import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { type AnswerFormat, answerFormatFor } from '../../../src/http/passes/answer-format.ts';
import { ByteWriter, fieldLine } from '../../../src/http/passes/byte-writer.ts';
import {
  closesConnection,
  ERROR_REASONS,
  type ErrorAnswer,
  type ErrorReason,
  writeErrorAnswer,
} from '../../../src/http/passes/error-answer.ts';
import { type Redirect, writeRedirect, writeRedirectTo } from '../../../src/http/passes/redirect.ts';
import { DATE_TEXT, fieldPairs, headBytes, parseRequest, parseResponse } from './heads.ts';

const REASONS = Object.keys(ERROR_REASONS) as readonly ErrorReason[];
const FORMATS: readonly AnswerFormat[] = ['text', 'json', 'html'];
const ID_TEXT = '0a'.repeat(16);

function answer(options: Partial<ErrorAnswer> = {}): string {
  const writer = new ByteWriter(new Uint8Array(80_000));
  const end = writeErrorAnswer(writer, {
    reason: 'no-route',
    format: 'text',
    isHead: false,
    closes: false,
    clientMinorVersion: 1,
    dateText: DATE_TEXT,
    requestId: new Uint8Array(16).fill(10),
    ...options,
  });
  assert.notEqual(end, -1);
  return Buffer.from(writer.memory.subarray(0, end)).toString();
}

function parseAnswer(
  text: string,
  method?: number,
): { readonly fields: ReadonlyMap<string, string>; readonly body: string } {
  const bytes = Buffer.from(text);
  const parser = parseResponse(bytes, method);
  return { fields: new Map(fieldPairs(parser.fields)), body: bytes.subarray(parser.bodyStart).toString() };
}

describe('answers of Weir itself', () => {
  test('an answer as text', () => {
    assert.equal(
      answer(),
      [
        'HTTP/1.1 404 Not Found',
        'Content-Type: text/plain; charset=utf-8',
        'Content-Length: 96',
        'Cache-Control: no-store',
        'X-Content-Type-Options: nosniff',
        'Date: Sun, 06 Nov 1994 08:49:37 GMT',
        `X-Request-Id: ${ID_TEXT}`,
        '',
        `404 Not Found\n\nNo service answers this host and path.\nRequest: ${ID_TEXT}\n`,
      ].join('\r\n'),
    );
  });

  test('every reason in every format is a valid response of the stated length', () => {
    for (const reason of REASONS) {
      for (const format of FORMATS) {
        for (const requestId of [undefined, new Uint8Array(16).fill(10)]) {
          const text = answer({ reason, format, requestId });
          const { fields, body } = parseAnswer(text);
          assert.ok(text.startsWith(`HTTP/1.1 ${ERROR_REASONS[reason].status} `), reason);
          assert.equal(Number(fields.get('content-length')), Buffer.byteLength(body), reason);
          assert.equal(body.includes(ID_TEXT), requestId !== undefined, reason);
          assert.equal(fields.get('x-request-id'), requestId && ID_TEXT);
          assert.equal(fields.has('connection'), closesConnection(reason), reason);
          if (format === 'json') assert.equal(JSON.parse(body).requestId, requestId && ID_TEXT);
        }
      }
    }
  });

  test('the answers cover the documented status codes', () => {
    const statuses = [...new Set(REASONS.map((reason) => ERROR_REASONS[reason].status))].sort((a, b) => a - b);
    assert.deepEqual(statuses, [400, 403, 404, 408, 413, 414, 417, 421, 429, 431, 500, 501, 502, 503, 504, 505]);
  });

  test('the answer to HEAD has the length of the answer to GET, and no body', () => {
    const { fields, body } = parseAnswer(answer({ isHead: true }), METHOD.head);
    assert.equal(body, '');
    assert.equal(fields.get('content-length'), '96');
  });

  test('the connection ends if the reason or the caller needs this', () => {
    const connection = (options: Partial<ErrorAnswer>): string | undefined =>
      parseAnswer(answer(options)).fields.get('connection');
    assert.equal(connection({ reason: 'invalid-request' }), 'close');
    assert.equal(connection({ closes: true }), 'close');
    assert.equal(connection({ clientMinorVersion: 0 }), 'keep-alive');
    assert.equal(connection({ clientMinorVersion: 0, closes: true }), 'close');
  });

  test('429 says when to try again', () => {
    const retryAfter = (options: Partial<ErrorAnswer>): string | undefined =>
      parseAnswer(answer(options)).fields.get('retry-after');
    assert.equal(retryAfter({ reason: 'too-many-requests' }), '1');
    assert.equal(retryAfter({ reason: 'too-many-requests', retryAfterSeconds: 2.1 }), '3');
    assert.equal(retryAfter({ reason: 'overloaded', retryAfterSeconds: 0 }), '1');
    assert.equal(retryAfter({ reason: 'overloaded' }), undefined);
  });

  test('a message replaces the text of the reason and is escaped', () => {
    const message = 'Unpaid <b>"bill"</b> & co';
    const body = (format: AnswerFormat): string => parseAnswer(answer({ reason: 'suspended', format, message })).body;
    assert.ok(body('text').includes(message));
    assert.equal(JSON.parse(body('json')).message, message);
    assert.ok(body('html').includes('Unpaid &#60;b&#62;&#34;bill&#34;&#60;/b&#62; &#38; co'));
    assert.ok(!answer({ reason: 'suspended' }).includes('Unpaid'));
  });

  test('the page of a tenant replaces the body up to 16 KiB', () => {
    const page = (length: number): NonNullable<ErrorAnswer['page']> => ({
      body: Buffer.alloc(length, 'x'),
      contentTypeLine: fieldLine('Content-Type', 'text/html'),
    });
    const { fields, body } = parseAnswer(answer({ reason: 'no-endpoints', page: page(16_384) }));
    assert.equal(body, 'x'.repeat(16_384));
    assert.equal(fields.get('content-type'), 'text/html');
    assert.ok(parseAnswer(answer({ page: page(16_385) })).body.startsWith('404 Not Found'));
  });

  test('too little memory gives -1', () => {
    const whole = answer().length;
    const write = (bytes: number): number =>
      writeErrorAnswer(new ByteWriter(new Uint8Array(bytes)), {
        reason: 'no-route',
        format: 'text',
        isHead: false,
        closes: false,
        clientMinorVersion: 1,
        dateText: DATE_TEXT,
        requestId: new Uint8Array(16),
      });
    assert.equal(write(whole), whole);
    assert.equal(write(whole - 1), -1);
  });
});

describe('format by Accept', () => {
  const cases: readonly (readonly [string[], AnswerFormat])[] = [
    [[], 'text'],
    [[''], 'text'],
    [['*/*'], 'text'],
    [['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'], 'html'],
    [['application/json, text/plain, */*'], 'json'],
    [['application/json'], 'json'],
    [['Application/*'], 'json'],
    [['text/*;q=0.5, application/json;q=0.4'], 'text'],
    [['text/html;q=0.3, text/*;q=0.7, */*;q=0.5'], 'text'],
    [['text/plain;q=0, text/html;q=0.001'], 'html'],
    [['text/plain;q=0, */*'], 'json'],
    [['text/html;level=1;q=0.2, application/json; Q=0.3'], 'json'],
    [['text/html', 'application/json;q=1.0'], 'html'],
    [['text/html;q=0.9', 'application/json'], 'json'],
    [['image/png'], 'text'],
    [['text/plain;q=0,text/html;q=0,application/json;q=0'], 'text'],
    [['text/html;q=x, application/json;q=0.1'], 'json'],
    [[', ,text/html ;q=0.5,,'], 'html'],
    [[`${'a/b,'.repeat(255)}text/html, text/html`], 'text'],
  ];
  for (const [values, expected] of cases) {
    test(`"${values.join('" and "').slice(0, 80)}" gives ${expected}`, () => {
      const lines = ['GET / HTTP/1.1', 'Host: a', ...values.map((value) => `Accept: ${value}`)];
      assert.equal(answerFormatFor(parseRequest(headBytes(lines)).fields), expected);
    });
  }
});

describe('answers to requests of gRPC', () => {
  test('the content type of the request decides, whatever Accept says', () => {
    const formatFor = (type: string): AnswerFormat => {
      const lines = ['POST / HTTP/1.1', 'Host: a', 'Accept: text/html', `Content-Type: ${type}`, 'Content-Length: 0'];
      return answerFormatFor(parseRequest(headBytes(lines)).fields);
    };
    for (const type of ['application/grpc', 'Application/GRPC+proto', 'application/grpc;a=b', 'application/grpc ; a=b'])
      assert.equal(formatFor(type), 'grpc', type);
    for (const type of ['application/grp', 'application/grpc-web', 'application/grpcx', 'application-grpc', ''])
      assert.equal(formatFor(type), 'html', type);
  });

  test('an answer has the status of gRPC and no body', () => {
    assert.equal(
      answer({ reason: 'no-endpoints', format: 'grpc' }),
      [
        'HTTP/1.1 200 OK',
        'Content-Type: application/grpc',
        'grpc-status: 14',
        'grpc-message: No endpoint of the service is ready.',
        'Content-Length: 0',
        'Cache-Control: no-store',
        'X-Content-Type-Options: nosniff',
        'Date: Sun, 06 Nov 1994 08:49:37 GMT',
        `X-Request-Id: ${ID_TEXT}`,
        '',
        '',
      ].join('\r\n'),
    );
  });

  test('each reason has the status that gRPC gives its HTTP status, and a timeout of the endpoint has its own', () => {
    const statusFor = (reason: ErrorReason): string | undefined =>
      parseAnswer(answer({ reason, format: 'grpc' })).fields.get('grpc-status');
    const expected: Partial<Record<ErrorReason, string>> = {
      'invalid-request': '13',
      suspended: '7',
      'no-route': '12',
      'too-many-requests': '14',
      'body-too-large': '2',
      'connect-failed': '14',
      'endpoint-failed': '14',
      overloaded: '14',
      'connect-timeout': '14',
      'endpoint-timeout': '4',
    };
    for (const [reason, status] of Object.entries(expected)) assert.equal(statusFor(reason as ErrorReason), status);
  });

  test('a message is percent-encoded', () => {
    const text = answer({ reason: 'suspended', format: 'grpc', message: ' 100 % böse\r\nX: y ' });
    assert.equal(parseAnswer(text).fields.get('grpc-message'), '100 %25 b%C3%B6se%0D%0AX: y');
  });
});

describe('redirects', () => {
  const redirect = (options: Partial<Redirect> = {}): string => {
    const target = options.target ?? Buffer.from('/a?b=c');
    const writer = new ByteWriter(new Uint8Array(2_000));
    const end = writeRedirect(writer, {
      status: 301,
      scheme: 'https',
      host: Buffer.from('shop.example'),
      port: 443,
      target,
      targetStart: 0,
      targetEnd: target.length,
      dateText: DATE_TEXT,
      closes: false,
      clientMinorVersion: 1,
      ...options,
    });
    return Buffer.from(writer.memory.subarray(0, end)).toString();
  };
  const location = (options: Partial<Redirect>): string | undefined =>
    parseAnswer(redirect(options)).fields.get('location');

  test('a redirect to a complete URI, whose bytes cannot end the line', () => {
    const writer = new ByteWriter(new Uint8Array(2_000));
    const end = { dateText: DATE_TEXT, closes: true, clientMinorVersion: 1 };
    writeRedirectTo(writer, 'http://shop.example/a\r\nb\u00e9 c?d', { status: 303, ...end });
    assert.equal(
      Buffer.from(writer.memory.subarray(0, writer.at)).toString(),
      'HTTP/1.1 303 See Other\r\nContent-Length: 0\r\nLocation: http://shop.example/a%0D%0Ab%E9%20c?d\r\n' +
        'Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n',
    );
  });

  test('a redirect to https', () => {
    assert.equal(
      redirect(),
      'HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\nLocation: https://shop.example/a?b=c\r\n' +
        'Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n',
    );
  });

  const cases: readonly (readonly [string, Partial<Redirect>, string])[] = [
    ['another port', { port: 8443 }, 'https://shop.example:8443/a?b=c'],
    ['port 80 of http', { scheme: 'http', port: 80 }, 'http://shop.example/a?b=c'],
    ['port 443 of http', { scheme: 'http', port: 443 }, 'http://shop.example:443/a?b=c'],
    ['an IPv6 address', { host: Buffer.from('[2001:db8::1]') }, 'https://[2001:db8::1]/a?b=c'],
    ['two slashes', { target: Buffer.from('//attacker.example') }, 'https://shop.example//attacker.example'],
    ['no slash', { target: Buffer.from('.attacker.example') }, 'https://shop.example/.attacker.example'],
    ['an empty target', { target: Buffer.from('') }, 'https://shop.example/'],
    [
      'controls',
      { target: Buffer.from('/a\r\nSet-Cookie: \u00e9') },
      'https://shop.example/a%0D%0ASet-Cookie:%20%C3%A9',
    ],
    [
      'a part of an array',
      { target: Buffer.from('GET /x HTTP'), targetStart: 4, targetEnd: 6 },
      'https://shop.example/x',
    ],
  ];
  for (const [name, options, expected] of cases) {
    test(`${name} gives ${expected}`, () => assert.equal(location(options), expected));
  }

  test('each status has its reason phrase, and the connection is as the caller says', () => {
    const statuses = ['301 Moved Permanently', '302 Found', '307 Temporary Redirect', '308 Permanent Redirect'];
    for (const text of statuses) {
      const status = Number.parseInt(text, 10) as Redirect['status'];
      assert.ok(redirect({ status }).startsWith(`HTTP/1.1 ${text}\r\n`));
    }
    assert.equal(parseAnswer(redirect({ closes: true })).fields.get('connection'), 'close');
    assert.equal(parseAnswer(redirect({ clientMinorVersion: 0 })).fields.get('connection'), 'keep-alive');
  });
});
