import type { RequestHeadRefusal } from '../h1/refusals.ts';
import { type AbuseLimits, MAX_CONCURRENT_STREAMS } from './abuse-limits.ts';
import type { ReceiverOwner } from './data-receiver.ts';
import { DecodedHead, type HeadKind } from './decoded-head.ts';
import type { FrameReader } from './frames.ts';
import { HeaderBlock } from './header-block.ts';
import { HpackDecoder } from './hpack/decoder.ts';
import { ERROR, FLAG, FRAME, MAX_STREAM_ID, PRIORITY_BYTES, readUint32 } from './protocol.ts';
import type { Http2Stream } from './stream.ts';
import type { StreamTable } from './stream-table.ts';

export interface HeadReceiverOwner extends ReceiverOwner {
  /** Adds the stream of a request, and passes the head to the handler. */
  onRequest(id: number, head: DecodedHead, refusal: RequestHeadRefusal | undefined, endsStream: boolean): void;
}

/** All connections of this thread decode heads into the same memory. */
const head: DecodedHead = new DecodedHead();

/** Receives HEADERS and CONTINUATION: heads of requests or responses, and trailers (RFC 9113 §8.1). */
export class HeadReceiver {
  readonly #isServer: boolean;
  readonly #owner: HeadReceiverOwner;
  readonly #streams: StreamTable;
  readonly #limits: AbuseLimits;
  readonly #block: HeaderBlock = new HeaderBlock();
  readonly #decoder: HpackDecoder = new HpackDecoder();
  /** Whether the stream of the block depends on itself. */
  #dependsOnItself = false;

  constructor(isServer: boolean, owner: HeadReceiverOwner, streams: StreamTable, limits: AbuseLimits) {
    this.#isServer = isServer;
    this.#owner = owner;
    this.#streams = streams;
    this.#limits = limits;
  }

  /** The stream whose header block is not complete; 0 if there is none. */
  get openBlockId(): number {
    return this.#block.streamId;
  }

  /** Whether a frame comes between the frames of a header block. */
  isInterruptedBy({ type, streamId }: FrameReader): boolean {
    const { openBlockId } = this;
    return openBlockId !== 0 && (type !== FRAME.continuation || streamId !== openBlockId);
  }

  onHeaders({ streamId, flags, dependency, bytes, start, end }: FrameReader): void {
    this.#dependsOnItself = dependency === streamId;
    this.#limits.onHead();
    if ((flags & FLAG.endHeaders) !== 0) this.#onBlock(streamId, flags, bytes, start, end);
    else {
      this.#block.begin(streamId, flags);
      this.#append(bytes, start, end);
    }
  }

  onContinuation({ flags, bytes, start, end }: FrameReader): void {
    const block = this.#block;
    // RFC 9113 §6.10: CONTINUATION follows only HEADERS that has not ended the block.
    if (block.streamId === 0) {
      this.#owner.fail(ERROR.protocol);
      return;
    }
    if (!this.#append(bytes, start, end) || (flags & FLAG.endHeaders) === 0) return;
    const { streamId, bytes: blockBytes, length } = block;
    block.end();
    this.#onBlock(streamId, block.flags, blockBytes as Uint8Array, 0, length);
  }

  /** RFC 9113 §5.3.2: priorities are ignored. RFC 7540 §5.3.1 and §6.3: two mistakes are stream errors. */
  onPriority({ streamId, length, bytes, start }: FrameReader): void {
    if (length !== PRIORITY_BYTES) this.#owner.failStream(streamId, ERROR.frameSize);
    else if ((readUint32(bytes, start) & MAX_STREAM_ID) === streamId) this.#owner.failStream(streamId, ERROR.protocol);
  }

  #append(bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#block.append(bytes, start, end)) return true;
    this.#owner.fail(ERROR.enhanceYourCalm);
    return false;
  }

  #onBlock(id: number, flags: number, bytes: Uint8Array, start: number, end: number): void {
    const stream = this.#streams.get(id);
    const isNew = stream === undefined && this.#isServer && this.#streams.isIdle(id);
    if (stream === undefined && !this.#checkWithoutStream(id, isNew)) return;
    const kind: HeadKind = stream?.hasHead === true ? 'trailers' : this.#isServer ? 'request' : 'response';
    head.begin(kind, stream?.method);
    head.blockBytes = end - start;
    const result = this.#decoder.decode(bytes, start, end, head);
    if (result !== 'done') {
      // RFC 9113 §4.3: every block must be decoded, because it changes the table that later blocks use.
      this.#owner.fail(result === 'invalid' ? ERROR.compression : ERROR.enhanceYourCalm);
      return;
    }
    const endsStream = (flags & FLAG.endStream) !== 0;
    if (isNew) this.#onNewStream(id, endsStream);
    else if (stream !== undefined) this.#onHead(stream, kind, endsStream);
  }

  /** Checks a block that belongs to no open stream. Returns false if the connection has failed. */
  #checkWithoutStream(id: number, isNew: boolean): boolean {
    // RFC 9113 §5.1.1: a client opens odd streams, and a server opens none without push.
    if ((id & 1) === 0 || (!this.#isServer && this.#streams.isIdle(id))) this.#owner.fail(ERROR.protocol);
    // RFC 9113 §5.1: HEADERS on a closed stream is a connection error. A peer may not have seen our reset yet.
    else if (!isNew && !(this.#streams.isIgnored(id) && this.#streams.takeLateHead()))
      this.#owner.fail(ERROR.streamClosed);
    else return true;
    return false;
  }

  #onNewStream(id: number, endsStream: boolean): void {
    this.#streams.lastPeerId = id;
    if (id > this.#streams.lastAcceptedId) return;
    const result = head.finish(endsStream);
    // RFC 9113 §5.1.2: a server may refuse more streams than it allows; the client may repeat them.
    if (this.#streams.size >= MAX_CONCURRENT_STREAMS) this.#owner.failStream(id, ERROR.refusedStream);
    else if (result === 'malformed' || this.#dependsOnItself) this.#owner.failStream(id, ERROR.protocol);
    else this.#owner.onRequest(id, head, result === 'done' ? undefined : result, endsStream);
  }

  #onHead(stream: Http2Stream, kind: HeadKind, endsStream: boolean): void {
    const { id } = stream;
    const result = head.finish(endsStream);
    stream.receivedBytes += head.blockBytes;
    // RFC 9113 §5.1: HEADERS after END_STREAM of an open stream is a stream error.
    if (stream.hasPeerEnded) this.#owner.failStream(id, ERROR.streamClosed);
    // RFC 9113 §8.1: trailers end the stream. RFC 7540 §5.3.1: a stream cannot depend on itself.
    else if (result !== 'done' || this.#dependsOnItself || (kind === 'trailers' && !endsStream)) {
      this.#owner.failStream(id, ERROR.protocol);
    } else {
      if (kind === 'trailers') stream.consumer?.onTrailers(stream, head.fields);
      else {
        stream.hasHead = head.status >= 200;
        stream.promisedBytes = promisedBytesOf(head);
        stream.consumer?.onResponse(stream, head);
      }
      // The consumer may have reset the stream.
      if (endsStream && stream.id === id) this.#owner.onPeerEnd(stream);
    }
  }
}

/** Returns how many bytes of DATA must follow a head, or -1 if the head does not say so. */
export function promisedBytesOf({ framing, startsWebSocket }: DecodedHead): number {
  // RFC 9113 §8.5: DATA of CONNECT is not content.
  if (startsWebSocket) return -1;
  return framing.kind === 'chunked' ? -1 : framing.length;
}
