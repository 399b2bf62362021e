import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { RESPONSE_VECTORS } from './message-vectors.ts';
import { cutsOf, readResponses } from './read-messages.ts';

/** The status line, framing and body of each response, and then a refusal or `more body` if there is one. */
const OUTCOMES: Readonly<Record<string, readonly string[]>> = {
  // RFC 9112 §6.1: the connection is closed after such a response (`BodyFraming.endsConnection`).
  'resp-te-http10': ['HTTP/1.0 200 Ok, chunked: '],
  'resp-te-and-cl': ['content-length-with-transfer-encoding'],
  'resp-te-0': ['invalid-transfer-encoding'],
  'resp-te-1': ['invalid-transfer-encoding'],
  'resp-te-3': ['invalid-transfer-encoding'],
  'resp-cl-negative': ['invalid-content-length'],
  'resp-truncated-chunked': ['more body'],
  // Whether the client asked for an upgrade is not decided by the parser. The bytes after the 101 are no response.
  'resp-101-unsolicited': ['HTTP/1.1 101 Switching Protocols, none: ', 'invalid-status-line'],
  'resp-103-then-200': ['HTTP/1.1 103 Early Hints, none: ', 'HTTP/1.1 200 OK, length 2: ok'],
  'resp-header-lf': ['invalid-line-ending'],
  'resp-before-request-end': ['HTTP/1.1 413 Too Large, length 0: '],
};

test('each response of an endpoint has its outcome, whole, at every split and byte by byte', () => {
  for (const { id, bytes } of RESPONSE_VECTORS) {
    const whole = readResponses(bytes, [], METHOD.get);
    const messages = whole.messages.map(({ start, framing, body }) => `${start}, ${framing}: ${body}`);
    assert.deepEqual(whole.end === 'end' ? messages : [...messages, whole.end], OUTCOMES[id], id);
    for (const cuts of cutsOf(bytes)) {
      assert.deepEqual(readResponses(bytes, cuts, METHOD.get), whole, `${id} split at ${cuts[0]}`);
    }
  }
});
