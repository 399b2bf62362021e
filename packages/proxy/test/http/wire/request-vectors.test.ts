// Sends requests that confuse proxies, or that exceed a limit, to a real proxy, with an endpoint behind it that records each
// request. Each refused request must get exactly the status that its RFC names.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type RecordingEndpoint, recordingEndpoint } from '../../fixtures/recording-endpoint.ts';
import { startServing, webService } from '../../fixtures/services.ts';
import { REQUEST_VECTORS } from '../h1/message-vectors.ts';
import { exchange, expectedFor } from './hostile-exchange.ts';

const MAX_BODY_BYTES = 10_000;
/** The statuses of the refused vectors that do not get 400. */
const STATUSES: Readonly<Record<string, number>> = {
  'reqline-http1.2': 505,
  'reqline-http2.0': 505,
  'expect-100-obfuscated': 417,
  'limit-header-16k': 431,
  'limit-headers-count-2001': 431,
  'limit-uri-64k': 414,
};

const post = (fields: string, body = ''): string => `POST / HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n${body}`;
const chunk = (size: number): string => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`;
/** Requests that are refused because of what the proxy supports or of a limit, with their status. */
const REFUSED: Readonly<Record<string, readonly [request: string, status: number]>> = {
  CONNECT: ['CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n', 501],
  'a method of 33 letters': [`${'M'.repeat(33)} / HTTP/1.1\r\nHost: a\r\n\r\n`, 501],
  'HTTP/1.2': ['GET / HTTP/1.2\r\nHost: a\r\n\r\n', 505],
  'HTTP/3.0': ['GET / HTTP/3.0\r\nHost: a\r\n\r\n', 505],
  'a target of more than 8 KiB': [`GET /${'a'.repeat(8 * 1024)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
  'a head of more than 32 KiB': [
    post(Array.from({ length: 5 }, (_, at) => `X${at}: ${'a'.repeat(8_000)}`).join('\r\n')),
    431,
  ],
  'more than 100 fields': [post(Array.from({ length: 101 }, (_, at) => `X${at}: a`).join('\r\n')), 431],
  'large trailers': [post('Transfer-Encoding: chunked', `0\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`), 431],
  'a body whose length is above the limit': [
    post(`Content-Length: ${MAX_BODY_BYTES + 1}`, 'x'.repeat(MAX_BODY_BYTES + 1)),
    413,
  ],
  'a chunked body above the limit': [
    post('Transfer-Encoding: chunked', `${chunk(MAX_BODY_BYTES)}${chunk(1)}0\r\n\r\n`),
    413,
  ],
  'another expectation': [post('Expect: 200-ok\r\nContent-Length: 2', 'ok'), 417],
  'a transfer coding besides chunked': [post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'), 400],
  'no Host': ['GET / HTTP/1.1\r\n\r\n', 400],
};

/** The cuts that split a message of this length into parts of 7 bytes. */
const partsOf7 = (length: number): readonly number[] =>
  Array.from({ length: Math.max(0, Math.ceil(length / 7) - 1) }, (_, index) => 7 * (index + 1));

describe('requests that must be refused, or that confuse proxies', () => {
  let fleet: Fleet;
  let recorder: RecordingEndpoint;
  before(async () => {
    fleet = await startFleet();
    recorder = await recordingEndpoint();
    const settings = { httpPorts: [PORT], maxBodyBytes: MAX_BODY_BYTES };
    await startServing(fleet, webService([recorder.endpoint], { settings }));
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    await recorder[Symbol.asyncDispose]();
  });

  test('the statuses are those that the vectors name', () => {
    for (const { id, expect } of REQUEST_VECTORS) {
      const named = [...expect.matchAll(/(?:reject|status|second)-(4\d\d)/g)].map(([, status]) => Number(status));
      if (named.length > 0) assert.ok(named.includes(STATUSES[id] ?? 400), id);
    }
  });

  for (const { id, bytes } of REQUEST_VECTORS) {
    for (const cuts of [[], partsOf7(bytes.length)]) {
      if (cuts.length > 300) continue;
      test(`${id}, ${cuts.length === 0 ? 'whole' : 'in parts of 7 bytes'}`, async () => {
        const expected = expectedFor(bytes);
        const { forwarded } = expected;
        const isRefused = expected.statuses.length > forwarded.length;
        const statuses = [...forwarded.map(() => 200), ...(isRefused ? [STATUSES[id] ?? 400] : [])];
        const writing = { cuts, isSlow: false };
        const answers = await exchange({ host: fleet.addressOf(), port: PORT }, bytes, { writing, expected });
        assert.deepEqual(
          answers.map(({ status }) => status),
          statuses,
        );
        assert.deepEqual(
          recorder.take().map(({ framing, body }) => [framing, body]),
          forwarded.map(({ framing, body }) => [framing, body]),
        );
      });
    }
  }

  for (const [name, [request, status]] of Object.entries(REFUSED)) {
    test(`${name}: ${status}, and the connection ends`, async () => {
      const methods = [request.slice(0, request.indexOf(' '))];
      const expected = { forwarded: [], partial: undefined, statuses: [status, 200], methods };
      // A request behind the refused request is not read, so that the end of the connection ends the exchange.
      const bytes = Buffer.from(`${request}GET / HTTP/1.1\r\nHost: a\r\n\r\n`, 'latin1');
      const writing = { cuts: [], isSlow: false };
      const answers = await exchange({ host: fleet.addressOf(), port: PORT }, bytes, { writing, expected });
      assert.deepEqual(
        answers.map((answer) => [answer.status, answer.fields.get('connection')]),
        [[status, 'close']],
      );
      assert.deepEqual(recorder.take(), []);
    });
  }
});
