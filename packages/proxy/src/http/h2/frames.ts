import {
  CLIENT_PREFACE,
  ERROR,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
  MAX_FRAME_BYTES,
  MAX_STREAM_ID,
  PRIORITY_BYTES,
  readUint32,
  writeUint32,
} from './protocol.ts';

const NO_BYTES: Uint8Array = new Uint8Array(0);

// What the next byte belongs to.
const HEADER = 0;
const PADDING_LENGTH = 1;
/** The content of DATA. */
const CONTENT = 2;
const PADDING = 3;
/** The payload of a frame other than DATA. */
const PAYLOAD = 4;
/** The first bytes of a client. */
const PREFACE = 5;

/**
 * Divides the bytes of one direction of a connection into frames (RFC 9113 §4), however the bytes arrive. The content of
 * DATA is returned in pieces as it arrives; the payload of all other frames is returned complete, in place if it has
 * arrived in one piece. An idle reader has no memory of its own but the first bytes of a frame header.
 */
export class FrameReader {
  /** The header of the current frame. */
  type = 0;
  flags = 0;
  streamId = 0;
  /** The length of the payload with its padding. */
  length = 0;
  /**
   * The result: content without padding and without the fields of HEADERS for priorities, from `start` to `end`
   * (exclusive) of `bytes`.
   */
  bytes: Uint8Array = NO_BYTES;
  start = 0;
  end = 0;
  /** Whether the result is the first and the last piece of the frame. */
  isFirst = true;
  isLast = true;
  /** The number of bytes of padding, with the byte of its length. Valid from the first piece on. */
  paddingBytes = 0;
  /** The stream on which the stream of HEADERS depends, or -1. */
  dependency = -1;
  /** After `error`: the code of the connection error. */
  error: number = ERROR.none;
  /** The position of the next byte of the array of the last call. */
  position = 0;
  #state: number;
  #prefaceLength = 0;
  #header: Uint8Array | undefined;
  #headerLength = 0;
  /** The bytes of the payload that were not taken yet. In DATA, padding is counted separately. */
  #contentLeft = 0;
  #paddingLeft = 0;
  /** A payload of which only a part has arrived. */
  #partial: Uint8Array | undefined;

  /** `hasPreface`: the preface of a client comes before the first frame. */
  constructor({ hasPreface }: { readonly hasPreface: boolean }) {
    this.#state = hasPreface ? PREFACE : HEADER;
  }

  /** Whether the preface, a frame header or a frame other than DATA is incomplete. */
  get isInFrame(): boolean {
    return this.#headerLength > 0 || this.#state === PAYLOAD || this.#state === PREFACE;
  }

  /** Whether the current frame changes settings. */
  get isSettings(): boolean {
    return this.type === FRAME.settings && (this.flags & FLAG.ack) === 0;
  }

  /**
   * Reads from `position` to `end` (exclusive). `frame`: a complete frame other than DATA. `data`: a piece of DATA.
   * `more`: all bytes are used up. After `error`, the connection must end.
   */
  next(bytes: Uint8Array, end: number): 'frame' | 'data' | 'more' | 'error' {
    for (;;) {
      switch (this.#state) {
        case HEADER:
          if (!this.#takeHeader(bytes, end)) return 'more';
          this.error = this.#checkHeader();
          if (this.error !== ERROR.none) return 'error';
          break;
        case PADDING_LENGTH:
          if (this.position === end) return 'more';
          if (!this.#takePaddingLength(bytes)) return 'error';
          break;
        case CONTENT:
          return this.#takeContent(bytes, end);
        case PREFACE:
          if (!this.#takePreface(bytes, end)) return this.error === ERROR.none ? 'more' : 'error';
          break;
        case PADDING:
          if (!this.#skipPadding(end)) return 'more';
          break;
        default:
          return this.#takePayload(bytes, end);
      }
    }
  }

  #takePreface(bytes: Uint8Array, end: number): boolean {
    for (; this.position < end && this.#prefaceLength < CLIENT_PREFACE.length; this.position += 1) {
      // RFC 9113 §3.4: an invalid preface is a connection error.
      if (bytes[this.position] !== CLIENT_PREFACE[this.#prefaceLength]) {
        this.error = ERROR.protocol;
        return false;
      }
      this.#prefaceLength += 1;
    }
    if (this.#prefaceLength < CLIENT_PREFACE.length) return false;
    this.#state = HEADER;
    return true;
  }

  #takeHeader(bytes: Uint8Array, end: number): boolean {
    let header = bytes;
    let at = this.position;
    if (this.#headerLength > 0 || end - at < FRAME_HEADER_BYTES) {
      header = this.#header ??= new Uint8Array(FRAME_HEADER_BYTES);
      while (this.#headerLength < FRAME_HEADER_BYTES && this.position < end) {
        header[this.#headerLength] = bytes[this.position] as number;
        this.#headerLength += 1;
        this.position += 1;
      }
      if (this.#headerLength < FRAME_HEADER_BYTES) return false;
      this.#headerLength = 0;
      at = 0;
    } else this.position += FRAME_HEADER_BYTES;
    this.length = ((header[at] as number) << 16) | ((header[at + 1] as number) << 8) | (header[at + 2] as number);
    this.type = header[at + 3] as number;
    this.flags = header[at + 4] as number;
    // RFC 9113 §4.1: the reserved bit is ignored.
    this.streamId = readUint32(header, at + 5) & MAX_STREAM_ID;
    this.#contentLeft = this.length;
    if (this.type !== FRAME.data) {
      this.#state = PAYLOAD;
      return true;
    }
    this.isFirst = true;
    this.isLast = false;
    this.paddingBytes = 0;
    this.#paddingLeft = 0;
    this.#state = (this.flags & FLAG.padded) !== 0 ? PADDING_LENGTH : CONTENT;
    return true;
  }

  /** Returns the code of the connection error if the header is invalid, otherwise `ERROR.none`. */
  #checkHeader(): number {
    const { type, length, streamId } = this;
    // RFC 9113 §4.2: a frame above SETTINGS_MAX_FRAME_SIZE is an error.
    if (length > MAX_FRAME_BYTES) return ERROR.frameSize;
    switch (type) {
      case FRAME.data:
        // RFC 9113 §6.1: DATA belongs to a stream. The length of padding takes one byte.
        if (streamId === 0) return ERROR.protocol;
        return (this.flags & FLAG.padded) !== 0 && length === 0 ? ERROR.frameSize : ERROR.none;
      case FRAME.headers:
      case FRAME.priority:
      case FRAME.continuation:
        // RFC 9113 §6.2, §6.3 and §6.10: these frames belong to a stream.
        return streamId === 0 ? ERROR.protocol : ERROR.none;
      case FRAME.rstStream:
        // RFC 9113 §6.4.
        if (streamId === 0) return ERROR.protocol;
        return length === 4 ? ERROR.none : ERROR.frameSize;
      case FRAME.settings:
        // RFC 9113 §6.5: SETTINGS applies to the connection. An acknowledgement is empty, and a setting has 6 bytes.
        if (streamId !== 0) return ERROR.protocol;
        return ((this.flags & FLAG.ack) !== 0 ? length : length % 6) === 0 ? ERROR.none : ERROR.frameSize;
      case FRAME.pushPromise:
        // RFC 9113 §8.4: a client cannot push, and our client has turned push off.
        return ERROR.protocol;
      case FRAME.ping:
        // RFC 9113 §6.7.
        if (streamId !== 0) return ERROR.protocol;
        return length === 8 ? ERROR.none : ERROR.frameSize;
      case FRAME.goaway:
        // RFC 9113 §6.8.
        if (streamId !== 0) return ERROR.protocol;
        return length >= 8 ? ERROR.none : ERROR.frameSize;
      case FRAME.windowUpdate:
        // RFC 9113 §6.9.
        return length === 4 ? ERROR.none : ERROR.frameSize;
      default:
        return ERROR.none;
    }
  }

  #takePaddingLength(bytes: Uint8Array): boolean {
    this.#paddingLeft = bytes[this.position] as number;
    this.position += 1;
    this.paddingBytes = this.#paddingLeft + 1;
    this.#contentLeft = this.length - this.paddingBytes;
    this.#state = CONTENT;
    if (this.#contentLeft >= 0) return true;
    // RFC 9113 §6.1: padding that is as long as the payload is an error.
    this.error = ERROR.protocol;
    return false;
  }

  #takeContent(bytes: Uint8Array, end: number): 'data' | 'more' {
    const available = end - this.position;
    const taken = available < this.#contentLeft ? available : this.#contentLeft;
    if (taken === 0 && this.#contentLeft > 0) return 'more';
    this.isFirst = this.#contentLeft === this.length - this.paddingBytes;
    this.bytes = bytes;
    this.start = this.position;
    this.end = this.position + taken;
    this.position = this.end;
    this.#contentLeft -= taken;
    this.isLast = this.#contentLeft === 0;
    if (this.isLast) this.#state = this.#paddingLeft > 0 ? PADDING : HEADER;
    return 'data';
  }

  #skipPadding(end: number): boolean {
    const skipped = Math.min(end - this.position, this.#paddingLeft);
    this.#paddingLeft -= skipped;
    this.position += skipped;
    if (this.#paddingLeft > 0) return false;
    this.#state = HEADER;
    return true;
  }

  #takePayload(bytes: Uint8Array, end: number): 'frame' | 'more' | 'error' {
    const taken = Math.min(end - this.position, this.#contentLeft);
    const start = this.position;
    this.position += taken;
    this.#contentLeft -= taken;
    this.bytes = bytes;
    this.start = start;
    // RFC 9113 §5.5: frames of unknown types are ignored. Their payload is not kept.
    if (this.type <= FRAME.continuation && taken < this.length) {
      this.#partial ??= new Uint8Array(this.length);
      const partialLength = this.length - this.#contentLeft - taken;
      this.#partial.set(bytes.subarray(start, this.position), partialLength);
      this.bytes = this.#partial;
      this.start = 0;
    }
    if (this.#contentLeft > 0) return 'more';
    this.end = this.type <= FRAME.continuation ? this.start + this.length : this.start;
    this.#partial = undefined;
    this.#state = HEADER;
    return this.type === FRAME.headers ? this.#stripHeaders() : 'frame';
  }

  /** Removes padding and the fields for priorities (RFC 9113 §6.2). */
  #stripHeaders(): 'frame' | 'error' {
    const { bytes, flags } = this;
    this.dependency = -1;
    let padding = 0;
    const fixedBytes = ((flags & FLAG.padded) === 0 ? 0 : 1) + ((flags & FLAG.priority) === 0 ? 0 : PRIORITY_BYTES);
    // RFC 9113 §4.2: a frame that is too short for its fields is an error.
    this.error = ERROR.frameSize;
    if (this.length < fixedBytes) return 'error';
    if ((flags & FLAG.padded) !== 0) {
      padding = bytes[this.start] as number;
      this.start += 1;
    }
    if ((flags & FLAG.priority) !== 0) {
      this.dependency = readUint32(bytes, this.start) & MAX_STREAM_ID;
      this.start += PRIORITY_BYTES;
    }
    this.end -= padding;
    // RFC 9113 §6.2: padding that leaves no space for the rest is an error.
    this.error = this.end < this.start ? ERROR.protocol : ERROR.none;
    return this.error === ERROR.none ? 'frame' : 'error';
  }
}

/** Writes the header of a frame (RFC 9113 §4.1) at `at`. Returns the position after the header. */
export function writeFrameHeader(
  memory: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  memory[at] = length >>> 16;
  memory[at + 1] = length >>> 8;
  memory[at + 2] = length;
  memory[at + 3] = type;
  memory[at + 4] = flags;
  writeUint32(memory, at + 5, streamId);
  return at + FRAME_HEADER_BYTES;
}
