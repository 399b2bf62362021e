import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { FrameReader, writeFrameHeader } from '../../../src/http/h2/frames.ts';
import { ERROR, FLAG, FRAME } from '../../../src/http/h2/protocol.ts';

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  /** Content without padding; of DATA all pieces together. */
  readonly content: string;
}

function frameOf(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const header = new Uint8Array(9);
  writeFrameHeader(header, 0, payload.length, type, flags, streamId);
  return Buffer.concat([header, payload]);
}

/** Reads all frames of `bytes`, which arrive in parts that end at `cuts`. */
function readFrames(
  bytes: Uint8Array,
  cuts: readonly number[] = [],
): { readonly frames: Frame[]; readonly error: number } {
  const reader = new FrameReader({ hasPreface: false });
  const frames: Frame[] = [];
  let data = '';
  for (const [index, start] of [0, ...cuts].entries()) {
    // A copy of its own, so that a reader that keeps positions of an earlier part fails.
    const part = new Uint8Array(bytes.subarray(start, cuts[index] ?? bytes.length));
    reader.position = 0;
    for (;;) {
      const result = reader.next(part, part.length);
      if (result === 'more') break;
      if (result === 'error') return { frames, error: reader.error };
      const { type, flags, streamId } = reader;
      const content = Buffer.from(reader.bytes.subarray(reader.start, reader.end)).toString('hex');
      data = result === 'data' && !reader.isFirst ? data + content : content;
      if (result === 'frame' || reader.isLast) frames.push({ type, flags, streamId, content: data });
    }
    part.fill(0xee);
  }
  return { frames, error: ERROR.none };
}

const padded = fc
  .record({ content: fc.uint8Array({ maxLength: 60 }), padding: fc.integer({ min: 0, max: 40 }) })
  .map(({ content, padding }) => Buffer.concat([Buffer.of(padding), content, Buffer.alloc(padding)]));
const anyFrame = fc.oneof(
  fc.uint8Array({ maxLength: 80 }).map((payload) => frameOf(FRAME.data, 0, 1, payload)),
  padded.map((payload) => frameOf(FRAME.data, FLAG.padded, 1, payload)),
  fc.uint8Array({ maxLength: 80 }).map((payload) => frameOf(FRAME.headers, FLAG.endHeaders, 1, payload)),
  padded.map((payload) => frameOf(FRAME.headers, FLAG.padded, 1, payload)),
  fc.uint8Array({ minLength: 5, maxLength: 80 }).map((payload) => frameOf(FRAME.headers, FLAG.priority, 1, payload)),
  fc.uint8Array({ minLength: 8, maxLength: 8 }).map((payload) => frameOf(FRAME.ping, 0, 0, payload)),
  fc.constant(frameOf(FRAME.settings, 0, 0, new Uint8Array(12))),
  fc.uint8Array({ maxLength: 80 }).map((payload) => frameOf(77, 0, 5, payload)),
);
const invalidFrame = fc
  .tuple(
    fc.integer({ min: 0, max: 12 }),
    fc.integer({ min: 0, max: 255 }),
    fc.integer({ min: 0, max: 3 }),
    fc.uint8Array(),
  )
  .map(([type, flags, streamId, payload]) => frameOf(type, flags, streamId, payload));

suite('FrameReader', () => {
  test('reads the same frames whatever the parts in which they arrive', () => {
    const streams = fc.array(fc.oneof({ weight: 5, arbitrary: anyFrame }, invalidFrame), {
      minLength: 1,
      maxLength: 8,
    });
    const withCuts = streams.chain((frames) => {
      const bytes = Buffer.concat(frames);
      const cuts = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length }), { maxLength: 20 });
      return cuts.map((list) => [bytes, list.sort((a, b) => a - b)] as const);
    });
    fc.assert(
      fc.property(withCuts, ([bytes, cuts]) => assert.deepEqual(readFrames(bytes, cuts), readFrames(bytes))),
      { numRuns: 3_000 },
    );
  });

  test('reads one byte at a time', () => {
    const bytes = Buffer.concat([
      frameOf(FRAME.data, FLAG.padded, 1, Buffer.from('03616263000000', 'hex')),
      frameOf(FRAME.data, FLAG.endStream, 3, new Uint8Array()),
      frameOf(FRAME.headers, FLAG.padded | FLAG.priority, 5, Buffer.from('0180000007ff82 00'.replace(' ', ''), 'hex')),
    ]);
    const cuts = Array.from({ length: bytes.length }, (_, index) => index + 1);
    assert.deepEqual(readFrames(bytes, cuts), {
      frames: [
        { type: FRAME.data, flags: FLAG.padded, streamId: 1, content: '616263' },
        { type: FRAME.data, flags: FLAG.endStream, streamId: 3, content: '' },
        { type: FRAME.headers, flags: FLAG.padded | FLAG.priority, streamId: 5, content: '82' },
      ],
      error: ERROR.none,
    });
  });

  test('ignores the reserved bit of a stream id', () => {
    const bytes = frameOf(FRAME.ping, 0, 0, new Uint8Array(8));
    bytes[5] = 0x80;
    assert.equal(readFrames(bytes).frames[0]?.streamId, 0);
  });

  const bytesOf = (length: number): Uint8Array => new Uint8Array(length);
  const cases: readonly (readonly [name: string, frame: Buffer, error: number])[] = [
    ['a frame above the maximum length', frameOf(FRAME.data, 0, 1, bytesOf(16_385)), ERROR.frameSize],
    ['DATA of the connection', frameOf(FRAME.data, 0, 0, bytesOf(1)), ERROR.protocol],
    ['padded DATA without a length', frameOf(FRAME.data, FLAG.padded, 1, bytesOf(0)), ERROR.frameSize],
    ['DATA with padding as long as the payload', frameOf(FRAME.data, FLAG.padded, 1, Buffer.of(2, 0)), ERROR.protocol],
    ['HEADERS of the connection', frameOf(FRAME.headers, 0, 0, bytesOf(1)), ERROR.protocol],
    ['HEADERS with too much padding', frameOf(FRAME.headers, FLAG.padded, 1, Buffer.of(2, 0)), ERROR.protocol],
    ['HEADERS that ends in its priority', frameOf(FRAME.headers, FLAG.priority, 1, bytesOf(4)), ERROR.frameSize],
    ['padded HEADERS without a length', frameOf(FRAME.headers, FLAG.padded, 1, bytesOf(0)), ERROR.frameSize],
    ['PRIORITY of the connection', frameOf(FRAME.priority, 0, 0, bytesOf(5)), ERROR.protocol],
    ['RST_STREAM of the connection', frameOf(FRAME.rstStream, 0, 0, bytesOf(4)), ERROR.protocol],
    ['RST_STREAM of another length', frameOf(FRAME.rstStream, 0, 1, bytesOf(5)), ERROR.frameSize],
    ['SETTINGS of a stream', frameOf(FRAME.settings, 0, 1, bytesOf(0)), ERROR.protocol],
    ['SETTINGS with half a setting', frameOf(FRAME.settings, 0, 0, bytesOf(9)), ERROR.frameSize],
    ['an acknowledgement with settings', frameOf(FRAME.settings, FLAG.ack, 0, bytesOf(6)), ERROR.frameSize],
    ['PUSH_PROMISE', frameOf(FRAME.pushPromise, 0, 1, bytesOf(4)), ERROR.protocol],
    ['PING of a stream', frameOf(FRAME.ping, 0, 1, bytesOf(8)), ERROR.protocol],
    ['PING of another length', frameOf(FRAME.ping, 0, 0, bytesOf(7)), ERROR.frameSize],
    ['GOAWAY of a stream', frameOf(FRAME.goaway, 0, 1, bytesOf(8)), ERROR.protocol],
    ['GOAWAY that is too short', frameOf(FRAME.goaway, 0, 0, bytesOf(7)), ERROR.frameSize],
    ['WINDOW_UPDATE of another length', frameOf(FRAME.windowUpdate, 0, 0, bytesOf(3)), ERROR.frameSize],
    ['CONTINUATION of the connection', frameOf(FRAME.continuation, 0, 0, bytesOf(1)), ERROR.protocol],
  ];
  for (const [name, frame, error] of cases) {
    test(`refuses ${name}`, () => {
      assert.deepEqual(readFrames(frame), { frames: [], error });
    });
  }
});
