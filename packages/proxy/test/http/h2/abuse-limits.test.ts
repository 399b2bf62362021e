import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  MAX_CONCURRENT_STREAMS,
  MAX_CONTINUATION_FRAMES,
  MAX_CONTROL_FRAMES,
  MAX_FORCED_RESETS,
  MAX_HEADER_BLOCK_BYTES,
  MAX_PEER_RESETS,
  MAX_PINGS,
  MAX_QUEUED_BYTES,
} from '../../../src/http/h2/abuse-limits.ts';
import { ERROR, FLAG, FRAME, SETTING } from '../../../src/http/h2/protocol.ts';
import type { Http2Stream } from '../../../src/http/h2/stream.ts';
import { GET, numberBytes, POST, RawPeer } from './raw-peer.ts';

/** Answers a request at once without content. */
function answer({ connection }: RawPeer, stream: Http2Stream): void {
  connection.beginHead().status(204);
  connection.sendHead(stream, true);
}

/** Repeats `step` with the ids of new streams until the connection fails. Returns the number of steps. */
function stepsUntilFailure(peer: RawPeer, maxSteps: number, step: (id: number) => void): number {
  let steps = 0;
  for (; steps < maxSteps && peer.failureCode === undefined; steps += 1) step(2 * steps + 1);
  return steps;
}

const NOTHING = new Uint8Array();

suite('a client that resets its requests', () => {
  const openAndReset = (peer: RawPeer, id: number, code: number = ERROR.cancel): void => {
    peer.head(id, GET, FLAG.endStream);
    peer.send(FRAME.rstStream, 0, id, numberBytes(code));
  };

  for (const [name, code] of Object.entries({ CANCEL: ERROR.cancel, NO_ERROR: ERROR.none })) {
    test(`loses the connection after too many resets by ${name} in a row`, () => {
      const peer = new RawPeer();
      assert.equal(
        stepsUntilFailure(peer, 1_000, (id) => openAndReset(peer, id, code)),
        MAX_PEER_RESETS + 1,
      );
      assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
      assert.equal(peer.connection.streamCount, 0);
    });
  }

  test('keeps the connection if other requests are completed', () => {
    const peer = new RawPeer((each, stream) => {
      if (stream.id % 4 === 1) answer(each, stream);
    });
    const step = (id: number): void => {
      if (id % 4 === 1) peer.head(id, GET, FLAG.endStream);
      else openAndReset(peer, id);
    };
    assert.equal(stepsUntilFailure(peer, 2_000, step), 2_000);
  });

  test('may reset requests again after some time', () => {
    const peer = new RawPeer();
    stepsUntilFailure(peer, MAX_PEER_RESETS, (id) => openAndReset(peer, id));
    peer.nowMs = 1_000;
    openAndReset(peer, 2 * MAX_PEER_RESETS + 1);
    assert.equal(peer.failureCode, undefined);
  });
});

suite('a client that makes the server send resets', () => {
  const mistakes: readonly (readonly [name: string, act: (peer: RawPeer, id: number) => void])[] = [
    ['WINDOW_UPDATE of 0', (peer, id) => peer.send(FRAME.windowUpdate, 0, id, numberBytes(0))],
    ['a window above the maximum', (peer, id) => peer.send(FRAME.windowUpdate, 0, id, numberBytes(0x7fff_ffff))],
    ['PRIORITY of a wrong length', (peer, id) => peer.send(FRAME.priority, 0, id, new Uint8Array(4))],
    [
      'a dependency on itself',
      (peer, id) => peer.send(FRAME.priority, 0, id, Buffer.concat([numberBytes(id), Buffer.of(1)])),
    ],
    ['trailers without an end', (peer, id) => peer.head(id, [['a', 'b']])],
    ['trailers with a pseudo-field', (peer, id) => peer.head(id, [[':path', '/']], FLAG.endStream)],
    ['too much data', (peer, id) => peer.send(FRAME.data, 0, id, new Uint8Array(8))],
  ];
  for (const [name, act] of mistakes) {
    test(`loses the connection after too many resets by ${name}`, () => {
      const peer = new RawPeer();
      const steps = stepsUntilFailure(peer, 1_000, (id) => {
        peer.head(id, [...POST, ['content-length', '7']]);
        act(peer, id);
      });
      assert.equal(steps, MAX_FORCED_RESETS + 1);
      assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
    });
  }

  test('loses the connection after too many malformed requests', () => {
    const peer = new RawPeer();
    const steps = stepsUntilFailure(peer, 1_000, (id) => peer.head(id, [...GET, ['connection', 'close']]));
    assert.equal(steps, MAX_FORCED_RESETS + 1);
    assert.deepEqual(peer.events, []);
  });
});

suite('a client that sends frames of no use', () => {
  const frames: readonly (readonly [name: string, send: (peer: RawPeer) => void])[] = [
    ['PING', (peer) => peer.send(FRAME.ping, 0, 0, new Uint8Array(8))],
    ['acknowledgements of PING', (peer) => peer.send(FRAME.ping, FLAG.ack, 0, new Uint8Array(8))],
    ['SETTINGS', (peer) => peer.send(FRAME.settings, 0, 0, NOTHING)],
    ['acknowledgements of SETTINGS', (peer) => peer.send(FRAME.settings, FLAG.ack, 0, NOTHING)],
    ['WINDOW_UPDATE', (peer) => peer.send(FRAME.windowUpdate, 0, 0, numberBytes(1))],
    ['PRIORITY', (peer) => peer.send(FRAME.priority, 0, 9, new Uint8Array(5))],
    ['frames of an unknown type', (peer) => peer.send(200, 0, 1, new Uint8Array(20))],
    ['GOAWAY', (peer) => peer.send(FRAME.goaway, 0, 0, new Uint8Array(8))],
    ['empty DATA', (peer) => peer.send(FRAME.data, 0, 1, NOTHING)],
    ['DATA of padding', (peer) => peer.send(FRAME.data, FLAG.padded, 1, Buffer.of(3, 0, 0, 0))],
    ['RST_STREAM of a closed stream', (peer) => peer.send(FRAME.rstStream, 0, 3, numberBytes(ERROR.cancel))],
  ];
  for (const [name, send] of frames) {
    test(`loses the connection after too many ${name}`, () => {
      const peer = new RawPeer((each, stream) => {
        if (stream.id === 3) answer(each, stream);
      });
      peer.head(1, POST);
      peer.head(3, GET, FLAG.endStream);
      const steps = stepsUntilFailure(peer, 5_000, () => send(peer));
      // The first SETTINGS of the connection has taken a token, and the two requests have given tokens back.
      assert.equal(steps, (name.endsWith('PING') ? MAX_PINGS : MAX_CONTROL_FRAMES) + 1);
      assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
    });
  }

  test('keeps the connection if it also sends requests', () => {
    const peer = new RawPeer(answer);
    const steps = stepsUntilFailure(peer, 20_000, (id) => {
      if (id % 10 === 1) peer.head(id, GET, FLAG.endStream);
      else peer.send(FRAME.ping, 0, 0, new Uint8Array(8));
    });
    assert.equal(steps, 20_000);
  });

  test('keeps the connection if each PING follows data', () => {
    const peer = new RawPeer(({ connection }, stream) => {
      connection.beginHead().status(200);
      connection.sendHead(stream, false);
    });
    peer.head(1, POST);
    const steps = stepsUntilFailure(peer, 5_000, () => {
      peer.connection.sendData(peer.streams[0] as Http2Stream, new Uint8Array(1), 0, 1);
      peer.send(FRAME.ping, 0, 0, new Uint8Array(8));
    });
    assert.equal(steps, 5_000);
  });

  test('keeps the connection if it sends them slowly', () => {
    const peer = new RawPeer();
    const steps = stepsUntilFailure(peer, 5_000, () => {
      peer.nowMs += 100;
      peer.send(FRAME.ping, 0, 0, new Uint8Array(8));
    });
    assert.equal(steps, 5_000);
  });
});

suite('a client that sends large heads', () => {
  test('loses the connection after too many CONTINUATION frames', () => {
    const peer = new RawPeer();
    peer.send(FRAME.headers, 0, 1, NOTHING);
    const steps = stepsUntilFailure(peer, 1_000, () => peer.send(FRAME.continuation, 0, 1, NOTHING));
    assert.equal(steps, MAX_CONTINUATION_FRAMES + 1);
    assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
  });

  test('loses the connection after a block above the limit', () => {
    const peer = new RawPeer();
    const piece = new Uint8Array(16_384);
    peer.send(FRAME.headers, 0, 1, piece);
    const steps = stepsUntilFailure(peer, 100, () => peer.send(FRAME.continuation, 0, 1, piece));
    assert.equal(steps, MAX_HEADER_BLOCK_BYTES / piece.length);
    assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
  });

  test('loses the connection if a few bytes stand for very many fields', () => {
    const peer = new RawPeer();
    const value = Buffer.alloc(4_000, 'a');
    // RFC 7541 §6.2.1: a literal with the name `a` and 4,000 bytes that enters the table, and then its index 1,000 times.
    const literal = Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), value]);
    peer.send(FRAME.headers, FLAG.endHeaders, 1, Buffer.concat([literal, Buffer.alloc(1_000, 0xbe)]));
    assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
    assert.deepEqual(peer.events, []);
  });

  test('gets an answer to a head above the limit, and may send further requests', () => {
    const peer = new RawPeer(answer);
    const long = [1, 2, 3].map((index) => [`x-${index}`, 'a'.repeat(12_000)] as const);
    const block = peer.blockOf([...GET, ...long, ['x-last', 'b'], ['x-last', 'b']]);
    peer.send(FRAME.headers, FLAG.endStream, 1, block.subarray(0, 16_384));
    peer.send(FRAME.continuation, FLAG.endHeaders, 1, block.subarray(16_384));
    peer.head(3, [...GET, ['x-last', 'b']], FLAG.endStream);
    assert.deepEqual(peer.events, ['request 1 head-too-large', 'request 3']);
  });
});

test('a server refuses more concurrent streams than it allows', () => {
  const peer = new RawPeer();
  for (let index = 0; index <= MAX_CONCURRENT_STREAMS; index += 1) peer.head(2 * index + 1, POST);
  assert.deepEqual(peer.sentResets(), [[2 * MAX_CONCURRENT_STREAMS + 1, ERROR.refusedStream]]);
  assert.equal(peer.events.length, MAX_CONCURRENT_STREAMS);
});

test('a client that never reads loses the connection', () => {
  const peer = new RawPeer(answer);
  peer.queuedBytes = MAX_QUEUED_BYTES;
  peer.head(1, GET, FLAG.endStream);
  assert.equal(peer.failureCode, undefined);
  peer.queuedBytes = MAX_QUEUED_BYTES + 1;
  peer.head(3, GET, FLAG.endStream);
  assert.equal(peer.failureCode, ERROR.enhanceYourCalm);
});

test('a client that changes its window again and again loses the connection', () => {
  const peer = new RawPeer();
  for (let id = 1; id < 200; id += 2) peer.head(id, GET, FLAG.endStream);
  const setting = (value: number): Uint8Array =>
    Buffer.concat([Buffer.of(0, SETTING.initialWindowSize), numberBytes(value)]);
  assert.ok(
    stepsUntilFailure(peer, 5_000, (id) => peer.send(FRAME.settings, 0, 0, setting(id))) <= MAX_CONTROL_FRAMES + 1,
  );
});
