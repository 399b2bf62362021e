// A peer that sends single frames to a server connection in memory, and reads the frames of the connection.
import assert from 'node:assert/strict';
import { Http2Connection } from '../../../src/http/h2/connection.ts';
import type { ConnectionHandler } from '../../../src/http/h2/connection-handler.ts';
import { FrameReader, writeFrameHeader } from '../../../src/http/h2/frames.ts';
import { HpackEncoder } from '../../../src/http/h2/hpack/encoder.ts';
import { CLIENT_PREFACE, FLAG, FRAME, readUint32, writeUint32 } from '../../../src/http/h2/protocol.ts';
import type { Http2Stream } from '../../../src/http/h2/stream.ts';
import { consumerOf } from './engine-socket.ts';

export interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export const GET: readonly (readonly [string, string])[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'example.com'],
  [':path', '/'],
];
export const POST: readonly (readonly [string, string])[] = [[':method', 'POST'], ...GET.slice(1)];

export class RawPeer {
  readonly connection: Http2Connection;
  readonly streams: Http2Stream[] = [];
  /** What happened to each stream: `onRequest` with the refusal, `onEnd`, and `onClose` with its code. */
  readonly events: string[] = [];
  nowMs = 0;
  /** What the transport says about its queue. */
  queuedBytes = 0;
  failureCode: number | undefined;
  isDrained = false;
  receivedBytes = 0;
  readonly #encoder: HpackEncoder = new HpackEncoder();
  readonly #reader: FrameReader = new FrameReader({ hasPreface: false });
  #output: Buffer = Buffer.alloc(0);

  /** `onRequest` is called after the request was recorded. */
  constructor(onRequest: (peer: RawPeer, stream: Http2Stream) => void = () => {}) {
    const handler: ConnectionHandler = {
      onRequest: (stream, _head, refusal) => {
        this.streams.push(stream);
        const { id } = stream;
        this.events.push(`request ${id}${refusal === undefined ? '' : ` ${refusal}`}`);
        onRequest(this, stream);
        return consumerOf({
          onData: (_stream, _bytes, start, end) => {
            this.receivedBytes += end - start;
          },
          onEnd: () => this.events.push(`end ${id}`),
          onClose: (_stream, code) => this.events.push(`close ${id} ${code}`),
        });
      },
      onCapacity: () => assert.fail('a server opens no streams'),
      onDrained: () => {
        this.isDrained = true;
      },
      onFailure: (code) => {
        this.failureCode = code;
      },
    };
    const sink = {
      write: (bytes: Uint8Array): number => {
        this.#output = Buffer.concat([this.#output, bytes]);
        return this.queuedBytes;
      },
    };
    this.connection = new Http2Connection({ role: 'server', sink, handler, now: () => this.nowMs });
    this.connection.start();
    this.connection.receive(CLIENT_PREFACE);
    this.send(FRAME.settings, 0, 0, Buffer.alloc(0));
    this.sentFrames();
  }

  send(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    this.connection.receive(frameOf(type, flags, streamId, payload));
  }

  /** Sends HEADERS with these fields. */
  head(streamId: number, fields: readonly (readonly [string, string])[], flags = 0): void {
    this.send(FRAME.headers, FLAG.endHeaders | flags, streamId, this.blockOf(fields));
  }

  blockOf(fields: readonly (readonly [string, string])[]): Uint8Array {
    const block = new Uint8Array(100_000);
    this.#encoder.begin(block, 0);
    for (const [name, value] of fields) {
      const bytes = Buffer.from(name + value);
      this.#encoder.field(bytes, 0, name.length, name.length, bytes.length);
    }
    return block.slice(0, this.#encoder.position);
  }

  /** Returns the frames that the connection has sent since the last call. */
  sentFrames(): SentFrame[] {
    const frames: SentFrame[] = [];
    const bytes = this.#output;
    this.#output = Buffer.alloc(0);
    this.#reader.position = 0;
    for (;;) {
      const result = this.#reader.next(bytes, bytes.length);
      if (result === 'more') return frames;
      assert.notEqual(result, 'error');
      const { type, flags, streamId, start, end } = this.#reader;
      frames.push({ type, flags, streamId, payload: Buffer.from(this.#reader.bytes.subarray(start, end)) });
    }
  }

  /** Returns the codes of the RST_STREAM frames that were sent since the last call, by stream. */
  sentResets(): (readonly [id: number, code: number])[] {
    return this.sentFrames()
      .filter(({ type }) => type === FRAME.rstStream)
      .map(({ streamId, payload }) => [streamId, readUint32(payload, 0)] as const);
  }
}

export function frameOf(type: number, flags: number, streamId: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(9 + payload.length);
  frame.set(payload, writeFrameHeader(frame, 0, payload.length, type, flags, streamId));
  return frame;
}

/** Returns four bytes of a number. */
export function numberBytes(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  for (const [index, value] of values.entries()) writeUint32(bytes, 4 * index, value);
  return bytes;
}
