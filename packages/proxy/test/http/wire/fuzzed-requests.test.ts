// Sends random requests, valid ones and changed ones, through a real proxy, in any parts. A second framing of a request, or
// of an answer, would let one client send requests in the name of another.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import fc from 'fast-check';
import type { RunningProxy } from '../../../src/index.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type RecordedRequest, type RecordingEndpoint, recordingEndpoint } from '../../fixtures/recording-endpoint.ts';
import { outcomesFor, startServing, webService } from '../../fixtures/services.ts';
import { arbitraryRequest, hostileRequests, wireOf } from '../h1/arbitrary-request.ts';
import type { ReadMessage } from '../h1/read-messages.ts';
import { exchange, expectedFor, type Writing } from './hostile-exchange.ts';

const validRequest = arbitraryRequest.map((valid): Uint8Array => Buffer.from(wireOf(valid), 'latin1'));
/** Most requests of HTTP/1.0 end their connection, so that no further request follows. */
const validHttp11 = arbitraryRequest.map(
  (valid): Uint8Array => Buffer.from(wireOf({ ...valid, version: '1.1' }), 'latin1'),
);
const request = fc.oneof(
  validRequest,
  { arbitrary: validHttp11, weight: 2 },
  { arbitrary: hostileRequests, weight: 2 },
);
/** Up to four requests that follow each other on one connection. The last one may be cut off. */
const requests = fc
  .tuple(fc.array(request, { minLength: 1, maxLength: 4 }), fc.option(fc.nat(80), { freq: 3 }))
  .map(([all, cut]) => {
    const bytes = Buffer.concat(all);
    return cut === null ? bytes : bytes.subarray(0, Math.max(1, bytes.length - cut));
  });

const WRITINGS: Readonly<
  Record<string, { readonly writing: fc.Arbitrary<(length: number) => Writing>; runs: number }>
> = {
  'in one part': { writing: fc.constant(() => ({ cuts: [], isSlow: false })), runs: 1_500 },
  'in random parts': {
    writing: fc
      .array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 12 })
      .map((shares) => (length: number) => ({
        cuts: shares.map((share) => Math.floor(share * length)).sort((a, b) => a - b),
        isSlow: false,
      })),
    runs: 1_500,
  },
  'byte by byte': { writing: fc.constant((length: number) => ({ cuts: everyByte(length), isSlow: false })), runs: 300 },
  'byte by byte, each when the kernel has taken the byte before': {
    writing: fc.constant((length: number) => ({ cuts: everyByte(length), isSlow: true })),
    runs: 300,
  },
};

function everyByte(length: number): readonly number[] {
  return Array.from({ length: Math.max(0, length - 1) }, (_, index) => index + 1);
}

/** The fields that the proxy writes itself. It passes on no other field that the client has not sent. */
const WRITTEN_FIELDS =
  /^(host|via|x-forwarded-(for|proto|host|port)|x-request-id|traceparent|content-length|transfer-encoding|connection|te)$/;

describe('requests of a client that breaks all rules', () => {
  let fleet: Fleet;
  let proxy: RunningProxy;
  let recorder: RecordingEndpoint;
  const partials: ReadMessage[] = [];
  before(async () => {
    fleet = await startFleet();
    recorder = await recordingEndpoint();
    proxy = await startServing(fleet, webService([recorder.endpoint], { settings: { httpPorts: [PORT] } }));
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    await recorder[Symbol.asyncDispose]();
  });

  async function check(bytes: Uint8Array, writing: Writing): Promise<void> {
    const expected = expectedFor(bytes);
    if (expected.partial !== undefined) partials.push(expected.partial);
    const answers = await exchange({ host: fleet.addressOf(), port: PORT }, bytes, { writing, expected });
    assert.deepEqual(
      answers.map(({ status }) => status),
      expected.statuses,
    );
    const recorded = recorder.take();
    assert.deepEqual(recorded.map(essenceOf), expected.forwarded.map(expectedEssence));
    for (const [index, { fields }] of recorded.entries()) assertOnlySentFields(fields, expected.forwarded[index]);
    assertNumbersFollow(answers.map(({ fields }) => fields.get('x-number')).slice(0, recorded.length));
  }

  for (const [name, { writing, runs }] of Object.entries(WRITINGS)) {
    test(`sent ${name}: the endpoint gets what the parser accepts, and the client gets one answer to each`, async () => {
      await fc.assert(
        fc.asyncProperty(requests, writing, (bytes, writingOf) => check(bytes, writingOf(bytes.length))),
        // A failure prints the seed. Without shrinking, because a shrunk request may wait for the timeout each time.
        { numRuns: runs, endOnFailure: true },
      );
    });
  }

  test('leave nothing behind: each request that was cut off is a part of one that the parser accepts', async () => {
    await eventually(() => assert.equal(proxy.view().services[0]?.active, 0));
    assert.equal(outcomesFor(proxy)?.internal ?? 0, 0);
    await proxy.close({ drainMs: 0 });
    assert.ok(partials.length > 0 && recorder.incomplete.length > 0);
    assert.deepEqual(recorder.take(), []);
    for (const each of recorder.incomplete)
      assert.ok(
        partials.some((whole) => isPartOf(each, whole)),
        JSON.stringify(each),
      );
  });
});

type Essence = readonly [method: string, target: string, framing: string, body: string];

function essenceOf({ method, target, framing, body }: RecordedRequest): Essence {
  return [method, target, framing, body];
}

function expectedEssence({ start, path, framing, body }: ReadMessage): Essence {
  const method = start.slice(0, start.indexOf(' '));
  const target = path.replace(' ', '');
  // RFC 9112 §3.2.4: OPTIONS with neither path nor query is sent in asterisk-form, any other empty path as `/`.
  if (method === 'OPTIONS' && target === '') return [method, '*', framing, body];
  return [method, path.startsWith(' ') ? `/${target}` : target, framing, body];
}

/** Fields that concern only the connection on which they arrived (RFC 9110 §7.6.1). */
const CONNECTION_FIELDS = /^(keep-alive|proxy-connection|proxy-authorization|http2-settings)$/i;

function assertOnlySentFields(fields: RecordedRequest['fields'], sent: ReadMessage | undefined): void {
  const sentLines = new Set(sent?.fields.map(([name, value]) => `${name}: ${value}`));
  for (const [name, value] of fields) {
    assert.doesNotMatch(name, CONNECTION_FIELDS);
    assert.ok(WRITTEN_FIELDS.test(name.toLowerCase()) || sentLines.has(`${name}: ${value}`), `${name}: ${value}`);
  }
}

/** Asserts that each answer of the endpoint is the answer to the next request. */
function assertNumbersFollow(numbers: readonly (string | undefined)[]): void {
  const first = Number(numbers[0]);
  for (const [index, number] of numbers.entries()) assert.equal(Number(number), first + index);
}

function isPartOf(part: RecordedRequest, whole: ReadMessage): boolean {
  const [method, target, framing, body] = expectedEssence(whole);
  return part.method === method && part.target === target && part.framing === framing && body.startsWith(part.body);
}
