import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { LLHTTP_VECTORS, type LlhttpVector } from './message-vectors.ts';
import { cutsOf, type ReadResult, readRequests, readResponses } from './read-messages.ts';

/** What Weir's parsers refuse although llhttp accepts it without a lenient flag, and why. */
const STRICTER: Readonly<Record<string, string>> = {
  'llhttp-request-connection-004': 'two empty lines before a request; RFC 9112 §2.2 asks for one',
  'llhttp-request-method-080': 'RFC 9112 §3.2.4: asterisk-form with a method other than OPTIONS',
  'llhttp-request-method-087': 'another protocol',
  'llhttp-request-method-088': 'another protocol',
  'llhttp-request-method-089': 'another protocol',
  'llhttp-request-sample-095': 'RFC 9112 §3.2: invalid Host',
  'llhttp-request-sample-096': 'RFC 9112 §3.2: invalid Host',
  'llhttp-request-sample-102': 'HTTP/0.9',
  'llhttp-request-transfer-encoding-130': 'a fragment in the target, and a transfer coding other than chunked',
  'llhttp-request-transfer-encoding-131': 'a fragment in the target, and a transfer coding other than chunked',
  'llhttp-request-uri-142': 'RFC 9112 §3.2: quotes in the target',
  'llhttp-request-uri-149': 'RFC 9112 §3.2: a fragment in the target',
  'llhttp-request-uri-151': 'RFC 9110 §4.2.4: userinfo in the target',
  'llhttp-response-connection-167': 'an empty line before a status line',
  'llhttp-response-connection-169': 'an empty line before a status line',
  'llhttp-response-pipelining-196': 'an empty line before a status line',
  'llhttp-response-sample-198': 'another protocol',
  'llhttp-response-sample-199': 'another protocol',
  'llhttp-response-sample-214': 'HTTP/0.9',
  'llhttp-response-sample-216': 'an empty line before a status line',
  'llhttp-response-transfer-encoding-218': 'RFC 9112 §6.1: a transfer coding that Weir does not offer',
  'llhttp-response-transfer-encoding-219': 'RFC 9112 §6.1: a transfer coding that Weir does not offer',
  'llhttp-response-transfer-encoding-220': 'RFC 9112 §6.1: a transfer coding that Weir does not offer',
};

/** What Weir's parsers accept although llhttp stops there, and why. */
const LESS_STRICT: Readonly<Record<string, string>> = {
  'llhttp-request-connection-002': 'the caller ends the connection after a message that is the last',
  'llhttp-response-connection-158': 'the caller ends the connection after a message that is the last',
  'llhttp-request-connection-017': 'the caller decides about upgrades',
  'llhttp-request-invalid-045': 'RFC 9110 §9.1: any token is a method',
  'llhttp-request-invalid-055': 'RFC 9110 §9.1: any token is a method',
};

/** Cases in which llhttp counts a message as complete although its body has not arrived. */
const CUT_BODIES: ReadonlySet<string> = new Set([
  'llhttp-request-content-length-036',
  'llhttp-response-content-length-173',
]);

const OPEN_ENDS: ReadonlySet<string> = new Set(['end', 'more head', 'more body']);

const read = ({ type }: LlhttpVector, bytes: Uint8Array, cuts: readonly number[] = []): ReadResult =>
  type.startsWith('request') ? readRequests(bytes, cuts) : readResponses(bytes, cuts, METHOD.get);

/** llhttp completes many messages before the last line, so their cases end before it. */
const TAILS = ['', '\r\n', '\r\n\r\n'];

/** Returns the bytes of a case as a message for a stricter parser: with the last line, and with a Host in each request. */
function completed(vector: LlhttpVector): Uint8Array {
  const candidates = TAILS.map((tail) => withHosts(vector, Buffer.concat([vector.bytes, Buffer.from(tail)])));
  const isComplete = ({ end, messages }: ReadResult): boolean =>
    vector.expect === 'error' ? !OPEN_ENDS.has(end) : messages.length === vector.messages;
  return candidates.find((bytes) => isComplete(read(vector, bytes))) ?? (candidates.at(-1) as Buffer);
}

function withHosts(vector: LlhttpVector, bytes: Buffer): Buffer {
  const { end, lastStart } = read(vector, bytes);
  if (end !== 'missing-host') return bytes;
  const text = bytes.toString('latin1');
  const at = text.indexOf('\r\n', lastStart + 2) + 2;
  const host = /^\s*\S+ http:\/\/([^/? ]+)/.exec(text.slice(lastStart))?.[1] ?? 'a';
  return withHosts(vector, Buffer.from(`${text.slice(0, at)}Host: ${host}\r\n${text.slice(at)}`, 'latin1'));
}

/** The bodies of llhttp's output: quoted spans, and `cr` and `lf`. */
const bodyOf = (spans: readonly string[]): string =>
  spans.map((span) => ({ cr: '\r', lf: '\n' })[span] ?? span.replace(/^"|"$/g, '')).join('');

const strict = LLHTTP_VECTORS.filter(({ type }) => !type.includes('lenient'));

test('what llhttp refuses is refused, besides named cases', () => {
  for (const vector of strict) {
    if (vector.expect !== 'error' || LESS_STRICT[vector.id] !== undefined) continue;
    const { end } = read(vector, completed(vector));
    assert.ok(!OPEN_ENDS.has(end), `${vector.id}: ${end}`);
  }
});

test('what llhttp accepts is read with the same messages and bodies, besides named cases', () => {
  for (const vector of strict) {
    if (vector.expect !== 'ok' || STRICTER[vector.id] !== undefined || CUT_BODIES.has(vector.id)) continue;
    const { messages, partial, end } = read(vector, completed(vector));
    assert.ok(OPEN_ENDS.has(end), `${vector.id}: ${end}`);
    assert.equal(messages.length, vector.messages, vector.id);
    const body = [...messages, partial].map((message) => message?.body ?? '').join('');
    assert.equal(body, bodyOf(vector.bodies), vector.id);
  }
});

test('each named case is one in which the parsers differ', () => {
  const byId = new Map(strict.map((vector) => [vector.id, vector]));
  for (const [id, why] of [...Object.entries(STRICTER), ...Object.entries(LESS_STRICT)]) {
    const vector = byId.get(id);
    assert.ok(vector !== undefined, id);
    const isRefused = !OPEN_ENDS.has(read(vector, completed(vector)).end);
    assert.equal(isRefused, STRICTER[id] !== undefined, `${id}: ${why}`);
    assert.equal(vector.expect === 'error', LESS_STRICT[id] !== undefined, id);
  }
});

test('what a lenient flag of llhttp allows is refused, or read as without the flag', () => {
  for (const vector of LLHTTP_VECTORS) {
    if (strict.includes(vector)) continue;
    const { messages, end } = read(vector, completed(vector));
    if (vector.expect === 'ok' && OPEN_ENDS.has(end)) assert.equal(messages.length, vector.messages, vector.id);
    else assert.ok(!OPEN_ENDS.has(end), vector.id);
  }
});

test('each case has the same outcome at every split and byte by byte', () => {
  for (const vector of LLHTTP_VECTORS) {
    const bytes = completed(vector);
    const whole = read(vector, bytes);
    for (const cuts of cutsOf(bytes)) assert.deepEqual(read(vector, bytes, cuts), whole, vector.id);
  }
});
