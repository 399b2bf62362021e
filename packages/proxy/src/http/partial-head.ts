import { MAX_HEAD_BYTES } from './h1/request-head.ts';

/** A parser of heads: `RequestHeadParser` or `ResponseHeadParser`. */
interface HeadParser {
  readonly bodyStart: number;
  parse(bytes: Uint8Array, start: number, end: number): string;
}

const FIRST_BYTES = 1_024;

/** A head that has not arrived in one piece: a copy of its bytes, and a parser of its own. */
export class PartialHead<P extends HeadParser> {
  readonly parser: P;
  #bytes: Uint8Array = new Uint8Array(FIRST_BYTES);
  #length = 0;
  /** The position in the last piece minus the position in `#bytes`. */
  #offset = 0;

  constructor(parser: P, reset: (parser: P) => void) {
    this.parser = parser;
    reset(parser);
  }

  /** Appends the bytes from `start` on, and parses. Returns what the parser returns. */
  parse(piece: Uint8Array, start: number): ReturnType<P['parse']> {
    const length = Math.min(piece.length - start, MAX_HEAD_BYTES - this.#length);
    this.#reserve(this.#length + length);
    this.#bytes.set(piece.subarray(start, start + length), this.#length);
    this.#offset = start - this.#length;
    this.#length += length;
    return this.parser.parse(this.#bytes, 0, this.#length) as ReturnType<P['parse']>;
  }

  /** Converts a position of the parser into a position in the last piece. */
  positionAfter(position: number): number {
    return position + this.#offset;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(length, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
