import type { BodyFraming } from '../../../src/http/h1/body-framing.ts';
import { ChunkedBody } from '../../../src/http/h1/chunked-body.ts';
import { type HeadFields, latin1Text } from '../../../src/http/h1/head-fields.ts';
import { RequestHeadParser } from '../../../src/http/h1/request-head.ts';
import { ResponseHeadParser } from '../../../src/http/h1/response-head.ts';

type Field = readonly [name: string, value: string];

export interface ReadMessage {
  /** The start line, rebuilt from its parts, such as `GET /path HTTP/1.1` or `HTTP/1.1 200 OK`. */
  readonly start: string;
  /** The host and port that the parser found; `host:0` without a port. Empty for responses. */
  readonly host: string;
  /** The path and the query that the parser found. Empty for responses. */
  readonly path: string;
  readonly fields: readonly Field[];
  readonly framing: string;
  /** The data of the body, decoded as Latin-1. */
  readonly body: string;
  readonly trailers: readonly Field[];
}

export interface ReadResult {
  /** The messages that were read to their end. */
  readonly messages: readonly ReadMessage[];
  /** The position after each of these messages. */
  readonly ends: readonly number[];
  /** Why reading ended: a refusal, all bytes are used up, or the bytes end inside of a message. */
  readonly end: string;
  /** The message that was not read to its end, if its head is complete. */
  readonly partial: ReadMessage | undefined;
  /** Where the last message began. */
  readonly lastStart: number;
}

/** Reads all requests in `bytes`, which arrive in parts that end at `cuts`. */
export function readRequests(bytes: Uint8Array, cuts: readonly number[] = []): ReadResult {
  const parser = new RequestHeadParser();
  return readMessages(bytes, cuts, {
    parser,
    reset: () => parser.reset(),
    describe: () => {
      const text = (start: number, end: number): string => latin1Text(parser.fields.bytes, start, end);
      const method = text(parser.methodStart, parser.methodEnd);
      return {
        start: `${method} ${text(parser.targetStart, parser.targetEnd)} HTTP/1.${parser.minorVersion}`,
        host: `${text(parser.hostStart, parser.hostEnd)}:${parser.port}`,
        path: `${text(parser.pathStart, parser.pathEnd)} ${text(parser.pathEnd, parser.targetEnd)}`,
      };
    },
  });
}

/** Reads all responses to requests of one method (an id of `METHOD`). */
export function readResponses(bytes: Uint8Array, cuts: readonly number[], method: number): ReadResult {
  const parser = new ResponseHeadParser();
  return readMessages(bytes, cuts, {
    parser,
    reset: () => parser.reset(method),
    describe: () => {
      const reason = latin1Text(parser.fields.bytes, parser.reasonStart, parser.reasonEnd);
      return { start: `HTTP/1.${parser.minorVersion} ${parser.status} ${reason}`, host: '', path: '' };
    },
  });
}

interface MessageParser {
  readonly parser: {
    readonly fields: HeadFields;
    readonly framing: BodyFraming;
    readonly bodyStart: number;
    parse(bytes: Uint8Array, start: number, end: number): string;
  };
  reset(): void;
  describe(): Pick<ReadMessage, 'start' | 'host' | 'path'>;
}

function readMessages(
  bytes: Uint8Array,
  cuts: readonly number[],
  { parser, reset, describe }: MessageParser,
): ReadResult {
  const messages: ReadMessage[] = [];
  const messageEnds: number[] = [];
  // A parser that reads behind the bytes that have arrived would find the ends of many lines.
  const memory = new Uint8Array(bytes.length + 16).fill(0x0d);
  const body = new BodyReader();
  let head: ReturnType<MessageParser['describe']> & Pick<ReadMessage, 'fields'> = {
    start: '',
    host: '',
    path: '',
    fields: [],
  };
  let start = 0;
  let isInBody = false;
  const ending = (end: string): ReadResult => ({
    messages,
    ends: messageEnds,
    end,
    partial: isInBody ? { ...head, ...body.taken } : undefined,
    lastStart: start,
  });
  const ends = [...cuts, bytes.length];
  reset();
  for (const [index, end] of ends.entries()) {
    const from = ends[index - 1] ?? 0;
    memory.set(bytes.subarray(from, end), from);
    let isWaiting = false;
    while (!isWaiting) {
      if (!isInBody) {
        if (start === end) break;
        const result = parser.parse(memory, start, end);
        if (result === 'more') break;
        if (result !== 'done') return ending(result);
        head = { ...describe(), fields: fieldsOf(parser.fields) };
        body.begin(parser.framing, parser.bodyStart);
        isInBody = true;
      }
      const result = body.take(memory, end);
      isWaiting = result === 'more';
      if (!isWaiting && result !== 'done') return ending(result);
      if (result === 'done') {
        messages.push({ ...head, ...body.taken });
        start = body.position;
        messageEnds.push(start);
        isInBody = false;
        reset();
      }
    }
  }
  if (isInBody) return ending('more body');
  return ending(start === bytes.length ? 'end' : 'more head');
}

/** Reads one body as its framing says. */
class BodyReader {
  readonly #chunked = new ChunkedBody();
  #framing = '';
  #kind = '';
  #missing = 0;
  #body = '';
  position = 0;

  begin(framing: BodyFraming, start: number): void {
    this.#framing = framing.kind === 'length' ? `length ${framing.length}` : framing.kind;
    this.#kind = framing.kind;
    this.#missing = framing.length;
    this.#body = '';
    this.position = start;
    this.#chunked.reset();
  }

  get taken(): Pick<ReadMessage, 'framing' | 'body' | 'trailers'> {
    const { trailers } = this.#chunked;
    return { framing: this.#framing, body: this.#body, trailers: trailers === undefined ? [] : fieldsOf(trailers) };
  }

  take(bytes: Uint8Array, end: number): string {
    if (this.#kind === 'chunked') return this.#takeChunks(bytes, end);
    const length = this.#kind === 'until-close' ? end - this.position : Math.min(this.#missing, end - this.position);
    this.#body += latin1Text(bytes, this.position, this.position + length);
    this.position += length;
    this.#missing -= length;
    return this.#kind === 'until-close' || this.#missing > 0 ? 'more' : 'done';
  }

  #takeChunks(bytes: Uint8Array, end: number): string {
    for (;;) {
      const result = this.#chunked.next(bytes, this.position, end);
      if (result !== 'data' && result !== 'more' && result !== 'done') return result;
      this.position = this.#chunked.position;
      if (result !== 'data') return result;
      this.#body += latin1Text(bytes, this.#chunked.dataStart, this.#chunked.dataEnd);
    }
  }
}

function fieldsOf(fields: HeadFields): readonly Field[] {
  return Array.from({ length: fields.count }, (_, index): Field => [fields.nameText(index), fields.valueText(index)]);
}

/** Above this size, only some splits are tried. */
const MAX_SPLITS = 1_000;

/** Returns the cuts that split `bytes` at every single position, and the cuts that split them into single bytes. */
export function* cutsOf(bytes: Uint8Array): Generator<readonly number[]> {
  const step = Math.ceil(bytes.length / MAX_SPLITS);
  for (let at = 1; at < bytes.length; at += step) yield [at];
  yield Array.from({ length: Math.max(0, bytes.length - 1) }, (_, at) => at + 1);
}
