import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Http2Connection } from '../../../src/http/h2/connection.ts';
import {
  CLIENT_PREFACE,
  ERROR,
  FLAG,
  FRAME,
  INITIAL_WINDOW_BYTES,
  readUint32,
  SETTING,
} from '../../../src/http/h2/protocol.ts';
import type { Http2Stream } from '../../../src/http/h2/stream.ts';
import { frameOf, GET, numberBytes, POST, RawPeer, type SentFrame } from './raw-peer.ts';

const PIECE = new Uint8Array(16_384);

function sendBody(peer: RawPeer, id: number, bytes: number): void {
  for (let left = bytes; left > 0; left -= PIECE.length) {
    peer.send(FRAME.data, 0, id, PIECE.subarray(0, Math.min(left, PIECE.length)));
  }
}

const windowUpdates = (frames: readonly SentFrame[]): (readonly [number, number])[] =>
  frames
    .filter(({ type }) => type === FRAME.windowUpdate)
    .map(({ streamId, payload }) => [streamId, readUint32(payload, 0)] as const);

const dataFrames = (frames: readonly SentFrame[]): (readonly [id: number, length: number, isLast: boolean])[] =>
  frames
    .filter(({ type }) => type === FRAME.data)
    .map(({ streamId, payload, flags }) => [streamId, payload.length, (flags & FLAG.endStream) !== 0] as const);

suite('the start of a connection', () => {
  const start = (bytes: Uint8Array): number | undefined => {
    let failureCode: number | undefined;
    const connection = new Http2Connection({
      role: 'server',
      sink: { write: () => 0 },
      now: () => 0,
      handler: {
        onRequest: () => assert.fail('no request'),
        onCapacity: () => {},
        onDrained: () => {},
        onFailure: (code) => {
          failureCode = code;
        },
      },
    });
    for (const byte of bytes) connection.receive(Uint8Array.of(byte));
    return failureCode;
  };

  test('is the preface and SETTINGS', () => {
    assert.equal(start(Buffer.concat([CLIENT_PREFACE, new Uint8Array([0, 0, 0, 4, 0, 0, 0, 0, 0])])), undefined);
  });

  test('fails at the first wrong byte of the preface', () => {
    assert.equal(start(Buffer.from('PRI * HTTP/2.0\r\n\r\nSX')), ERROR.protocol);
    assert.equal(start(Buffer.from('GET')), ERROR.protocol);
  });

  test('fails if another frame comes first', () => {
    const ping = new Uint8Array([0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert.equal(start(Buffer.concat([CLIENT_PREFACE, ping])), ERROR.protocol);
  });
});

suite('the windows of a server', () => {
  test('open only when the consumer has taken the bytes', () => {
    const peer = new RawPeer();
    peer.head(1, POST);
    sendBody(peer, 1, INITIAL_WINDOW_BYTES);
    assert.deepEqual(windowUpdates(peer.sentFrames()), []);
    assert.equal(peer.receivedBytes, INITIAL_WINDOW_BYTES);
    peer.connection.consumed(peer.streams[0] as Http2Stream, 40_000);
    peer.connection.flush();
    assert.deepEqual(windowUpdates(peer.sentFrames()), [[1, 40_000]]);
    sendBody(peer, 1, 40_000);
    assert.deepEqual(peer.sentResets(), []);
  });

  test('reset a stream whose client sends more', () => {
    const peer = new RawPeer();
    peer.head(1, POST);
    sendBody(peer, 1, INITIAL_WINDOW_BYTES + 1);
    assert.deepEqual(peer.sentResets(), [[1, ERROR.flowControl]]);
    assert.deepEqual(peer.events, ['request 1', `close 1 ${ERROR.flowControl}`]);
  });

  test('end a connection whose client sends more than 1 MiB on all streams', () => {
    const peer = new RawPeer();
    for (let index = 0; index < 17 && peer.failureCode === undefined; index += 1) {
      peer.head(2 * index + 1, POST);
      sendBody(peer, 2 * index + 1, INITIAL_WINDOW_BYTES);
    }
    assert.equal(peer.failureCode, ERROR.flowControl);
    assert.equal(peer.connection.streamCount, 0);
  });

  test('give the bytes of a reset stream back to the connection', () => {
    const peer = new RawPeer();
    for (let index = 0; index < 40; index += 1) {
      const id = 2 * index + 1;
      peer.head(id, POST);
      sendBody(peer, id, INITIAL_WINDOW_BYTES - 10);
      peer.connection.reset(peer.streams.at(-1) as Http2Stream, ERROR.cancel);
      // The client has sent these bytes before it has received the reset.
      sendBody(peer, id, 10);
    }
    assert.equal(peer.failureCode, undefined);
  });
});

suite('the data of a server', () => {
  const answerWith =
    (length: number) =>
    ({ connection }: RawPeer, stream: Http2Stream): void => {
      connection.beginHead().status(200);
      connection.sendHead(stream, false);
      connection.sendData(stream, new Uint8Array(length), 0, length, true);
    };
  const initialWindow = (value: number): Uint8Array =>
    Buffer.concat([Buffer.of(0, SETTING.initialWindowSize), numberBytes(value)]);

  test('stay within the window of the stream', () => {
    const peer = new RawPeer(answerWith(20));
    peer.send(FRAME.settings, 0, 0, initialWindow(8));
    peer.head(1, GET, FLAG.endStream);
    assert.deepEqual(dataFrames(peer.sentFrames()), [[1, 8, false]]);
    peer.send(FRAME.windowUpdate, 0, 1, numberBytes(5));
    assert.deepEqual(dataFrames(peer.sentFrames()), [[1, 5, false]]);
    peer.send(FRAME.settings, 0, 0, initialWindow(4));
    peer.send(FRAME.windowUpdate, 0, 1, numberBytes(4));
    assert.deepEqual(dataFrames(peer.sentFrames()), []);
    peer.send(FRAME.settings, 0, 0, initialWindow(100));
    assert.deepEqual(dataFrames(peer.sentFrames()), [[1, 7, true]]);
    assert.equal(peer.connection.streamCount, 0);
  });

  test('of several streams share the window of the connection', () => {
    const peer = new RawPeer(answerWith(50_000));
    peer.send(FRAME.settings, 0, 0, initialWindow(1_000_000));
    peer.head(1, GET, FLAG.endStream);
    peer.head(3, GET, FLAG.endStream);
    peer.head(5, GET, FLAG.endStream);
    peer.sentFrames();
    peer.send(FRAME.windowUpdate, 0, 0, numberBytes(40_000));
    const frames = dataFrames(peer.sentFrames()).map(([id, length]) => [id, length]);
    assert.deepEqual(frames, [
      [3, 16_384],
      [5, 16_384],
      [3, 40_000 - 2 * 16_384],
    ]);
  });

  test('wait for the transport', () => {
    const peer = new RawPeer(answerWith(200_000));
    peer.send(FRAME.settings, 0, 0, initialWindow(1_000_000));
    peer.send(FRAME.windowUpdate, 0, 0, numberBytes(1_000_000));
    peer.queuedBytes = 1;
    peer.head(1, GET, FLAG.endStream);
    const first = dataFrames(peer.sentFrames());
    assert.ok(first.length <= 4, `${first.length} frames`);
    peer.queuedBytes = 0;
    peer.connection.onSinkDrained();
    const rest = dataFrames(peer.sentFrames());
    const lengths = [...first, ...rest].map(([, length]) => length);
    assert.equal(
      lengths.reduce((sum, length) => sum + length, 0),
      200_000,
    );
    assert.equal(rest.at(-1)?.[2], true);
  });
});

suite('the content of a request', () => {
  const withLength = [...POST, ['content-length', '5']] as const;

  test('ends the request if it is as long as Content-Length', () => {
    const peer = new RawPeer();
    peer.head(1, withLength);
    peer.send(FRAME.data, FLAG.padded, 1, Buffer.from([2, 1, 2, 3, 0, 0]));
    peer.send(FRAME.data, FLAG.endStream, 1, new Uint8Array(2));
    assert.deepEqual(peer.events, ['request 1', 'end 1']);
  });

  for (const length of [4, 6]) {
    test(`resets the stream if it has ${length} bytes in place of 5`, () => {
      const peer = new RawPeer();
      peer.head(1, withLength);
      peer.send(FRAME.data, FLAG.endStream, 1, new Uint8Array(length));
      assert.deepEqual(peer.sentResets(), [[1, ERROR.protocol]]);
      assert.deepEqual(peer.events, ['request 1', `close 1 ${ERROR.protocol}`]);
    });
  }

  test('resets the stream if trailers come too early', () => {
    const peer = new RawPeer();
    peer.head(1, withLength);
    peer.head(1, [['a', 'b']], FLAG.endStream);
    assert.deepEqual(peer.sentResets(), [[1, ERROR.protocol]]);
  });
});

test('stops behind a number of heads, and continues with the rest of the bytes', () => {
  const peer = new RawPeer();
  const flags = FLAG.endHeaders | FLAG.endStream;
  const frames = [1, 3, 5, 7].map((id) => frameOf(FRAME.headers, flags, id, peer.blockOf(GET)));
  const [two, rest] = [Buffer.concat(frames.slice(0, 2)), Buffer.concat(frames.slice(2))];
  assert.equal(peer.connection.receive(Buffer.concat([two, rest]), 2), two.length);
  assert.deepEqual(peer.events, ['request 1', 'end 1', 'request 3', 'end 3']);
  assert.equal(peer.connection.receive(rest, 2), rest.length);
  assert.equal(peer.streams.length, 4);
});

suite('drain', () => {
  const goaways = (peer: RawPeer): number[] =>
    peer
      .sentFrames()
      .filter(({ type }) => type === FRAME.goaway)
      .map(({ payload }) => readUint32(payload, 0));

  test('serves requests that are on their way, then no others', () => {
    const peer = new RawPeer();
    peer.head(1, POST);
    peer.connection.drain();
    const frames = peer.sentFrames();
    assert.deepEqual(
      frames.map(({ type }) => type),
      [FRAME.goaway, FRAME.ping],
    );
    assert.equal(readUint32(frames[0]?.payload as Buffer, 0), 0x7fff_ffff);
    peer.head(3, POST);
    peer.send(FRAME.ping, FLAG.ack, 0, frames[1]?.payload as Buffer);
    assert.deepEqual(goaways(peer), [3]);
    peer.head(5, POST);
    peer.send(FRAME.data, 0, 5, new Uint8Array(5));
    peer.head(5, [['a', 'b']], FLAG.endStream);
    assert.deepEqual(peer.events, ['request 1', 'request 3']);
    assert.equal(peer.failureCode, undefined);
    for (const stream of peer.streams) peer.connection.reset(stream, ERROR.cancel);
    assert.equal(peer.isDrained, true);
  });

  test('ends a connection without streams after a round trip', () => {
    const peer = new RawPeer();
    peer.connection.drain();
    assert.equal(peer.isDrained, false);
    peer.send(FRAME.ping, FLAG.ack, 0, new Uint8Array(8));
    assert.deepEqual(goaways(peer), [0x7fff_ffff, 0]);
    assert.equal(peer.isDrained, true);
  });
});

test('a connection knows whether its peer owes the rest of a head', () => {
  const peer = new RawPeer();
  const { connection } = peer;
  const block = peer.blockOf(POST);
  assert.equal(connection.isInHead, false);
  connection.receive(Buffer.from([0, 0, block.length]));
  assert.equal(connection.isInHead, true);
  connection.receive(Buffer.from([FRAME.headers, 0, 0, 0, 0, 1]));
  assert.equal(connection.isInHead, true);
  connection.receive(block);
  assert.equal(connection.isInHead, true);
  peer.send(FRAME.continuation, FLAG.endHeaders, 1, new Uint8Array());
  assert.equal(connection.isInHead, false);
  // The rest of DATA may take longer.
  connection.receive(Buffer.from([0, 0, 5, FRAME.data, 0, 0, 0, 0, 1, 1, 2]));
  assert.equal(connection.isInHead, false);
});

test('a handler may answer a request before it returns', () => {
  const peer = new RawPeer(({ connection }, stream) => {
    connection.beginHead().status(204);
    connection.sendHead(stream, true);
  });
  peer.head(1, GET, FLAG.endStream);
  assert.deepEqual(peer.events, ['request 1']);
  assert.deepEqual(
    peer.sentFrames().map(({ type, flags }) => [type, flags]),
    [[FRAME.headers, FLAG.endHeaders | FLAG.endStream]],
  );
});

test('a stream ends with its head if nothing was sent since, otherwise with empty DATA', () => {
  const peer = new RawPeer(({ connection }, stream) => {
    connection.beginHead().status(200);
    connection.sendHead(stream, false);
    if (stream.id === 3) connection.flush();
    if (stream.id !== 5) connection.sendEnd(stream);
  });
  for (const id of [1, 3, 5, 7]) peer.head(id, GET, FLAG.endStream);
  peer.connection.sendEnd(peer.streams.find(({ id }) => id === 5) as Http2Stream);
  peer.connection.flush();
  const ends = FLAG.endStream;
  assert.deepEqual(
    peer.sentFrames().map(({ type, flags, streamId }) => [type, streamId, flags & ends]),
    [
      [FRAME.headers, 1, ends],
      [FRAME.headers, 3, 0],
      [FRAME.data, 3, ends],
      [FRAME.headers, 5, 0],
      [FRAME.headers, 7, ends],
      [FRAME.data, 5, ends],
    ],
  );
});

test('nothing can be sent on a stream that has ended', () => {
  const peer = new RawPeer();
  peer.head(1, GET, FLAG.endStream);
  const { connection } = peer;
  const stream = peer.streams[0] as Http2Stream;
  peer.send(FRAME.rstStream, 0, 1, numberBytes(ERROR.cancel));
  peer.head(3, GET, FLAG.endStream);
  peer.sentFrames();
  connection.beginHead().status(200);
  assert.throws(() => connection.sendHead(stream, true), /the stream has ended/);
  assert.throws(() => connection.sendData(stream, new Uint8Array(5), 0, 5), /the stream has ended/);
  assert.throws(() => connection.sendTrailers(stream, new Uint8Array()), /the stream has ended/);
  connection.consumed(stream, 100_000);
  connection.reset(stream, ERROR.cancel);
  connection.flush();
  assert.deepEqual(peer.sentFrames(), []);
});

suite('a response that ends before its request', () => {
  const respond = (peer: RawPeer, stream: Http2Stream): void => {
    const encoder = peer.connection.beginHead();
    encoder.status(413);
    peer.connection.sendHead(stream, true);
  };
  const pings = (frames: readonly SentFrame[]): readonly SentFrame[] =>
    frames.filter(({ type, flags }) => type === FRAME.ping && flags === 0);

  test('is followed by RST_STREAM when the client has answered a PING', () => {
    const peer = new RawPeer(respond);
    peer.head(1, POST);
    const frames = peer.sentFrames();
    assert.deepEqual(
      frames.map(({ type }) => type),
      [FRAME.headers, FRAME.ping],
    );
    // A second response comes before the answer, so the client may not have seen it.
    peer.head(3, POST);
    assert.deepEqual(
      peer.sentFrames().map(({ type }) => type),
      [FRAME.headers],
    );
    peer.send(FRAME.data, 0, 1, PIECE);
    const payload = pings(frames)[0]?.payload ?? assert.fail();
    peer.send(FRAME.ping, FLAG.ack, 0, payload);
    const later = peer.sentFrames();
    assert.deepEqual(
      later.map(({ type, streamId }) => [type, streamId]),
      [
        [FRAME.rstStream, 1],
        [FRAME.ping, 0],
      ],
    );
    peer.send(FRAME.ping, FLAG.ack, 0, payload);
    assert.deepEqual(peer.sentResets(), [[3, ERROR.none]]);
    assert.equal(peer.failureCode, undefined);
  });

  test('is followed by RST_STREAM at once if the client answers no PING', () => {
    const peer = new RawPeer(respond);
    for (let index = 0; index < 100; index += 1) peer.head(1 + 2 * index, POST);
    assert.deepEqual(peer.sentResets(), []);
    peer.head(201, POST);
    assert.deepEqual(peer.sentResets(), [[201, ERROR.none]]);
  });
});
