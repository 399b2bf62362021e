import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ERROR, FLAG, FRAME } from '../../../src/http/h2/protocol.ts';
import { frameOf, GET, numberBytes, RawPeer } from './raw-peer.ts';

const peerWithResets = (): { peer: RawPeer; resetAhead: number[] } => {
  const resetAhead: number[] = [];
  const peer = new RawPeer((_peer, { id, isResetAhead }) => {
    if (isResetAhead) resetAhead.push(id);
  });
  return { peer, resetAhead };
};

suite('a request whose RST_STREAM is in the same read', () => {
  const head = (peer: RawPeer, id: number): Uint8Array =>
    frameOf(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, peer.blockOf(GET));
  const reset = (id: number): Uint8Array => frameOf(FRAME.rstStream, 0, id, numberBytes(ERROR.cancel));

  test('is known as reset when it begins, wherever the frame is', () => {
    const { peer, resetAhead } = peerWithResets();
    const pairs = [1, 3].flatMap((id) => [head(peer, id), reset(id)]);
    const heads = [5, 7, 9].map((id) => head(peer, id));
    peer.connection.receive(Buffer.concat([...pairs, ...heads, reset(9), reset(5)]));
    assert.deepEqual(resetAhead, [1, 3, 5, 9]);
    assert.equal(peer.connection.streamCount, 1);
  });

  test('is known as reset if the read is processed in parts', () => {
    const { peer, resetAhead } = peerWithResets();
    const ids = Array.from({ length: 40 }, (_, index) => 2 * index + 1);
    let bytes: Uint8Array = Buffer.concat([...ids.map((id) => head(peer, id)), ...ids.map(reset)]);
    while (bytes.length > 0) bytes = bytes.subarray(peer.connection.receive(bytes, 16));
    assert.deepEqual(resetAhead, ids);
    assert.equal(peer.connection.streamCount, 0);
  });

  test('is known as reset if its head began in an earlier read', () => {
    const { peer, resetAhead } = peerWithResets();
    const [first, second] = [head(peer, 1), head(peer, 3)];
    peer.connection.receive(Buffer.concat([first, second.subarray(0, 12)]));
    peer.connection.receive(Buffer.concat([second.subarray(12), reset(3), reset(1)]));
    assert.deepEqual(resetAhead, [3]);
  });

  test('is known as reset behind CONTINUATION and before DATA', () => {
    const { peer, resetAhead } = peerWithResets();
    const block = peer.blockOf(GET);
    const frames = [
      frameOf(FRAME.headers, 0, 1, block.subarray(0, 2)),
      frameOf(FRAME.continuation, FLAG.endHeaders, 1, block.subarray(2)),
      frameOf(FRAME.data, 0, 1, new Uint8Array(100)),
      reset(1),
    ];
    peer.connection.receive(Buffer.concat(frames));
    assert.deepEqual(resetAhead, [1]);
  });
});

test('a request is not known as reset if the reset is not complete, or in the content of another frame', () => {
  const { peer, resetAhead } = peerWithResets();
  const reset = frameOf(FRAME.rstStream, 0, 1, numberBytes(ERROR.cancel));
  const head = frameOf(FRAME.headers, FLAG.endHeaders, 1, peer.blockOf(GET));
  const data = frameOf(FRAME.data, 0, 1, reset);
  const all = Buffer.concat([head, data, reset]);
  peer.connection.receive(all.subarray(0, all.length - 1));
  assert.deepEqual(resetAhead, []);
  assert.equal(peer.connection.streamCount, 1);
  peer.connection.receive(all.subarray(all.length - 1));
  assert.equal(peer.connection.streamCount, 0);
});
