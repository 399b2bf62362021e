import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REFUSAL_STATUS } from '../../../src/http/h1/refusals.ts';
import { REQUEST_VECTORS } from './message-vectors.ts';
import { cutsOf, type ReadResult, readRequests } from './read-messages.ts';

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Marker: smuggled\r\n\r\n';

/**
 * What becomes of each vector that need not be refused: the start line, framing and body of each request, and then a
 * refusal if there is one.
 */
const OUTCOMES: Readonly<Record<string, readonly string[]>> = {
  'cl-octal-looking': ['POST / HTTP/1.1, length 10: helloworld'],
  'cl-tab-prefix': ['POST / HTTP/1.1, length 5: hello'],
  'haproxy-cve-2021-40346': [`POST /index.html HTTP/1.1, length 55: ${SMUGGLED}`],
  // None of these requests has a Transfer-Encoding field: the words stand in the value of another field.
  'smuggler-contentEnc': ['POST / HTTP/1.1, length 6: 0\r\n\r\nX'],
  'smuggler-xprespace-09': ['POST / HTTP/1.1, length 6: 0\r\n\r\nX'],
  'smuggler-xprespace-20': ['POST / HTTP/1.1, length 6: 0\r\n\r\nX'],
  'smuggler-xprespace-a0': ['POST / HTTP/1.1, length 6: 0\r\n\r\nX'],
  'smuggler-xprespace-ff': ['POST / HTTP/1.1, length 6: 0\r\n\r\nX'],
  'reqline-http1.2': ['unsupported-version'],
  'reqline-leading-crlf': ['GET / HTTP/1.1, none: '],
  'host-list': ['invalid-host'],
  'host-bad-port': ['invalid-host'],
  'host-port-alpha': ['invalid-host'],
  'host-empty': ['invalid-host'],
  'host-underscore': ['GET / HTTP/1.1, none: '],
  'host-upper-trailing-dot': ['GET / HTTP/1.1, none: '],
  'host-ipv6': ['GET / HTTP/1.1, none: '],
  'host-ipv6-broken': ['invalid-host'],
  'host-absuri-port-mismatch': ['host-mismatch'],
  'host-absuri-ok-default-port': ['GET http://hostname:80/c20 HTTP/1.1, none: '],
  // HAProxy accepts userinfo. RFC 9110 §4.2.4: a recipient should treat userinfo as an error.
  'host-absuri-userinfo': ['invalid-target'],
  'hop-proxy-auth': ['GET / HTTP/1.1, none: '],
  // The requests below are framed without ambiguity. Whether their upgrade, expectation or connection is accepted is not
  // decided by the parser.
  'upgrade-premature': ['GET / HTTP/1.1, none: ', 'GET /smuggled HTTP/1.1, none: '],
  'upgrade-h2c': ['GET / HTTP/1.1, none: '],
  'expect-100-obfuscated': [`GET /logout HTTP/1.1, length 55: ${SMUGGLED}`],
  'expect-100-vanilla': ['POST / HTTP/1.1, length 5: hello'],
  'cl-on-get-body': [`GET / HTTP/1.1, length 55: ${SMUGGLED}`],
  'head-with-body': ['HEAD / HTTP/1.1, length 5: hello'],
  'bytes-after-close': ['GET / HTTP/1.1, length 0: ', 'invalid-target'],
  'pipelined-invalid-second': ['GET /1 HTTP/1.1, none: ', 'invalid-method'],
  'pipeline-3': ['GET /1 HTTP/1.1, none: ', 'GET /2 HTTP/1.1, none: ', 'GET /3 HTTP/1.1, none: '],
  'cut-body-early': ['more body'],
  'limit-header-16k': ['field-too-large'],
  'limit-headers-count-2001': ['too-many-fields'],
  'limit-uri-64k': ['target-too-long'],
};

function outcomeOf({ messages, end }: ReadResult): readonly string[] {
  const requests = messages.map(({ start, framing, body }) => `${start}, ${framing}: ${body}`);
  return end === 'end' ? requests : [...requests, end];
}

test('each request that is not accepted by the table is refused', () => {
  const refused = REQUEST_VECTORS.filter(({ id }) => OUTCOMES[id] === undefined);
  assert.equal(refused.length, REQUEST_VECTORS.length - Object.keys(OUTCOMES).length);
  for (const { id, bytes } of refused) {
    const { messages, end } = readRequests(bytes);
    assert.deepEqual(messages, [], id);
    const status = REFUSAL_STATUS[end as keyof typeof REFUSAL_STATUS];
    assert.equal(status, id === 'reqline-http2.0' ? 505 : 400, `${id}: ${end}`);
  }
});

test('no request that must be refused is in the table', () => {
  for (const { id, expect } of REQUEST_VECTORS) {
    if (expect === 'reject') assert.equal(OUTCOMES[id], undefined, id);
  }
});

test('each request of the table has its outcome', () => {
  for (const { id, bytes } of REQUEST_VECTORS) {
    const outcome = OUTCOMES[id];
    if (outcome !== undefined) assert.deepEqual(outcomeOf(readRequests(bytes)), outcome, id);
  }
});

test('each request has the same outcome at every split and byte by byte', () => {
  for (const { id, bytes } of REQUEST_VECTORS) {
    const whole = readRequests(bytes);
    for (const cuts of cutsOf(bytes)) assert.deepEqual(readRequests(bytes, cuts), whole, `${id} split at ${cuts[0]}`);
  }
});
