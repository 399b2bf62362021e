import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { METHOD } from '../../../src/http/h1/methods.ts';
import { arbitraryRequest, hostileRequests, wireOf } from './arbitrary-request.ts';
import { readRequests, readResponses } from './read-messages.ts';

const cutsIn = (length: number): fc.Arbitrary<readonly number[]> =>
  fc
    .uniqueArray(fc.integer({ min: 1, max: Math.max(1, length - 1) }), { maxLength: 12 })
    .map((cuts) => cuts.sort((a, b) => a - b));

const withCuts = (bytes: fc.Arbitrary<Uint8Array>): fc.Arbitrary<readonly [Uint8Array, readonly number[]]> =>
  bytes.filter(({ length }) => length > 1).chain((all) => cutsIn(all.length).map((cuts) => [all, cuts] as const));

test('a valid request is read exactly as it was written', () => {
  fc.assert(
    fc.property(fc.array(arbitraryRequest, { minLength: 1, maxLength: 3 }), (requests) => {
      const { messages, end } = readRequests(Buffer.from(requests.map(wireOf).join(''), 'latin1'));
      assert.equal(end, 'end');
      assert.equal(messages.length, requests.length);
      for (const [index, { method, target, version, fields, body, trailers }] of requests.entries()) {
        const message = messages[index];
        assert.equal(message?.start, `${method} ${target} HTTP/${version}`);
        assert.deepEqual(message.fields, fields);
        assert.equal(message.body, body);
        assert.deepEqual(message.trailers, trailers);
      }
    }),
    { numRuns: 500 },
  );
});

test('any bytes give the same requests in any parts', () => {
  fc.assert(
    fc.property(withCuts(fc.oneof(hostileRequests, fc.uint8Array({ maxLength: 100 }))), ([bytes, cuts]) => {
      assert.deepEqual(readRequests(bytes, cuts), readRequests(bytes));
    }),
    { numRuns: 2_000 },
  );
});

const responses = hostileRequests.map((bytes) =>
  Buffer.from(
    Buffer.from(bytes)
      .toString('latin1')
      .replace(/^\S+ \S+ (HTTP\/1\.\d)/, '$1 200 OK'),
    'latin1',
  ),
);

test('any bytes give the same responses in any parts', () => {
  fc.assert(
    fc.property(withCuts(responses), fc.constantFrom(METHOD.get, METHOD.head), ([bytes, cuts], method) => {
      assert.deepEqual(readResponses(bytes, cuts, method), readResponses(bytes, [], method));
    }),
    { numRuns: 1_000 },
  );
});

test('an accepted request has one Host, one framing and no control in a value', () => {
  fc.assert(
    fc.property(hostileRequests, (bytes) => {
      for (const { start, fields } of readRequests(bytes).messages) {
        const count = (name: string): number => fields.filter(([each]) => each.toLowerCase() === name).length;
        assert.ok(count('host') === 1 || (count('host') === 0 && start.endsWith('1.0')));
        assert.ok(count('content-length') + count('transfer-encoding') <= 1);
        for (const [name, value] of fields) {
          assert.match(name, /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/);
          assert.match(value, /^([!-~\x80-\xff]([\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/);
        }
      }
    }),
    { numRuns: 1_000 },
  );
});
