import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_CONCURRENT_STREAMS } from '../../../src/http/h2/abuse-limits.ts';
import { ERROR, FLAG, FRAME, SETTING } from '../../../src/http/h2/protocol.ts';
import type { Http2Stream } from '../../../src/http/h2/stream.ts';
import { GET, numberBytes, POST, RawPeer } from './raw-peer.ts';

type Step = (peer: RawPeer) => void;

/** The last stream that each peer has opened. */
const lastIds: WeakMap<RawPeer, number> = new WeakMap();

/** Chooses mostly a stream that the peer has opened, and sometimes any other. */
const chooseId = (peer: RawPeer, choice: number): number =>
  choice % 100 === 0 ? choice % 17 : 2 * (choice % Math.max(1, Math.ceil((lastIds.get(peer) ?? 1) / 2))) + 1;

const choice = fc.nat({ max: 10_000 });
const flags = fc.constantFrom(0, 0, 0, FLAG.endStream, FLAG.padded);
const window = fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.constantFrom(1, 7, 70_000, 0x7fff_ffff));

/** Frames that are mostly valid, so that many of them reach open streams. */
const frameStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(GET, POST, [...POST, ['content-length', '5'] as const], GET.slice(1)), flags)
      .map(
        ([fields, flag]): Step =>
          (peer) => {
            const id = (lastIds.get(peer) ?? -1) + 2;
            lastIds.set(peer, id);
            peer.head(id, fields, flag & FLAG.endStream);
          },
      ),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(choice, fc.uint8Array({ maxLength: 50 }), flags).map(([id, bytes, flag]): Step => {
      const payload = flag === FLAG.padded ? Buffer.concat([Buffer.of(3), bytes, Buffer.alloc(3)]) : bytes;
      return (peer) => peer.send(FRAME.data, flag, chooseId(peer, id), payload);
    }),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(choice, window).map(
      ([id, bytes]): Step =>
        (peer) =>
          peer.send(
            FRAME.windowUpdate,
            0,
            bytes < 100_000 && id % 3 === 0 ? 0 : chooseId(peer, id),
            numberBytes(bytes),
          ),
    ),
  },
  {
    weight: 2,
    arbitrary: window.map(
      (bytes): Step =>
        (peer) =>
          peer.send(FRAME.settings, 0, 0, Buffer.concat([Buffer.of(0, SETTING.initialWindowSize), numberBytes(bytes)])),
    ),
  },
  choice.map(
    (id): Step =>
      (peer) =>
        peer.send(FRAME.rstStream, 0, chooseId(peer, id), numberBytes(ERROR.cancel)),
  ),
  choice.map(
    (id): Step =>
      (peer) =>
        peer.head(chooseId(peer, id), [['a', 'b']], id % 2),
  ),
  fc.tuple(fc.integer({ min: 0, max: 40 }), flags, choice, fc.uint8Array({ maxLength: 40 })).map(
    ([type, flag, id, payload]): Step =>
      (peer) =>
        peer.send(type, flag, chooseId(peer, id), payload),
  ),
);

/** What the consumer of the newest or the oldest open stream does. */
const consumerStep: fc.Arbitrary<Step> = fc
  .tuple(
    fc.constantFrom('head', 'data', 'end', 'trailers', 'reset', 'consumed', 'drained', 'queue'),
    fc.nat({ max: 70_000 }),
  )
  .map(
    ([action, length]): Step =>
      (peer) =>
        act(peer, action, length),
  );

function act(peer: RawPeer, action: string, length: number): void {
  const { connection } = peer;
  if (action === 'queue') peer.queuedBytes = length;
  if (action === 'drained') {
    peer.queuedBytes = 0;
    connection.onSinkDrained();
  }
  const open = peer.streams.filter(({ id, hasEnded, endsAfterPending, pendingTrailers }) => {
    return id !== 0 && !hasEnded && !endsAfterPending && pendingTrailers === undefined;
  });
  const stream = open[length % Math.max(1, open.length)] as Http2Stream | undefined;
  if (stream === undefined) return;
  if (action === 'head') {
    connection.beginHead().status(200);
    connection.sendHead(stream, length % 2 === 0);
  } else if (action === 'data') connection.sendData(stream, new Uint8Array(length), 0, length, length % 3 === 0);
  else if (action === 'end') connection.sendEnd(stream);
  else if (action === 'trailers') connection.sendTrailers(stream, Buffer.from('A: b\r\n'));
  else if (action === 'reset') connection.reset(stream, ERROR.cancel);
  else if (action === 'consumed') connection.consumed(stream, stream.unconsumedBytes);
  connection.flush();
}

test('a server keeps its promises whatever a client sends and consumers do', () => {
  const steps = fc.array(fc.oneof({ weight: 3, arbitrary: frameStep }, consumerStep), { minLength: 20, maxLength: 80 });
  fc.assert(
    fc.property(steps, (list) => {
      const peer = new RawPeer();
      for (const id of [1, 3, 5]) peer.head(id, POST);
      lastIds.set(peer, 5);
      for (const step of list) {
        step(peer);
        assert.ok(peer.connection.streamCount <= MAX_CONCURRENT_STREAMS);
        if (peer.failureCode !== undefined) break;
      }
      peer.connection.onSinkClosed();
      assert.equal(peer.connection.streamCount, 0);
      // Each request ends with exactly one close, and nothing comes behind it.
      for (const stream of new Set(peer.events.map((event) => event.split(' ')[1]))) {
        const names = peer.events.filter((event) => event.split(' ')[1] === stream).map((event) => event.split(' ')[0]);
        assert.match(names.join(' '), /^request( end)? close$/);
      }
      // The frames of the connection are valid, and each stream has at most one end.
      const ends = peer
        .sentFrames()
        .filter(({ type, flags: sent }) => type <= FRAME.headers && (sent & FLAG.endStream) !== 0)
        .map(({ streamId: id }) => id);
      assert.equal(new Set(ends).size, ends.length);
    }),
    { numRuns: 2_000 },
  );
});
