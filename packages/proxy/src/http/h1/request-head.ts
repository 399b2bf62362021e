import { hostEndOf, isSameHost, portOf } from './authority.ts';
import { BodyFraming } from './body-framing.ts';
import { FieldLineParser } from './field-lines.ts';
import { FIELD, type HeadFields } from './head-fields.ts';
import { METHOD } from './methods.ts';
import type { RequestHeadRefusal } from './refusals.ts';
import { defaultPortOf, type RequestLine, RequestLineParser, type TargetForm } from './request-line.ts';

/** The size of a head, from its first byte to the empty line. */
export const MAX_HEAD_BYTES: number = 32 * 1024;

// What the next byte belongs to.
const FIRST_BYTE = 0;
const REQUEST_LINE = 1;
const FIELD_LINES = 2;

/**
 * Parses the head of an HTTP/1.1 or HTTP/1.0 request (RFC 9112 §3 and §5) in place. Each byte is read once, however the
 * bytes arrive. All positions are indexes into the array of the last call; each end is exclusive.
 */
export class RequestHeadParser implements RequestLine {
  methodStart = 0;
  methodEnd = 0;
  methodId: number = METHOD.other;
  targetForm: TargetForm = 'origin';
  targetStart = 0;
  targetEnd = 0;
  pathStart = 0;
  pathEnd = 0;
  readonly majorVersion: number = 1;
  minorVersion = 1;
  readonly #requestLine: RequestLineParser = new RequestLineParser(this);
  readonly #fieldLines: FieldLineParser = new FieldLineParser();
  readonly fields: HeadFields = this.#fieldLines.fields;
  readonly framing: BodyFraming = new BodyFraming();
  /**
   * The host as it was sent, without the port: of the target in absolute-form, otherwise of the Host field. It is empty
   * (start equals end) in an HTTP/1.0 request without a host.
   */
  hostStart = 0;
  hostEnd = 0;
  /** The port after the host; 0 if there is none. */
  port = 0;
  /** The position of the first byte after the head. */
  bodyStart = 0;
  #state = FIRST_BYTE;

  /** Prepares for the next request. Must be called before the first byte of each further request. */
  reset(): void {
    this.#state = FIRST_BYTE;
  }

  /**
   * Parses a request whose first byte is at `start` and of which the bytes up to `end` (exclusive) are there. After
   * `more`, the next call must have the same `start` and all bytes at the same positions, in this array or in a larger
   * one. After a refusal, the connection must be closed: the end of the request is unknown.
   */
  parse(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | RequestHeadRefusal {
    const isFull = end - start >= MAX_HEAD_BYTES;
    const stop = isFull ? start + MAX_HEAD_BYTES : end;
    if (this.#state === FIRST_BYTE) {
      this.#requestLine.reset(start);
      this.#state = REQUEST_LINE;
    }
    if (this.#state === REQUEST_LINE) {
      const result = this.#requestLine.parse(bytes, stop);
      if (result !== 'done') return result === 'more' && isFull ? 'head-too-large' : result;
      this.#fieldLines.reset(this.#requestLine.position);
      this.#state = FIELD_LINES;
    }
    const result = this.#fieldLines.parse(bytes, stop);
    if (result !== 'done') return result === 'more' && isFull ? 'head-too-large' : result;
    this.bodyStart = this.#fieldLines.position;
    return this.#checkFields(bytes) ?? this.framing.decideRequest(this.fields, this.minorVersion) ?? 'done';
  }

  #checkFields(bytes: Uint8Array): RequestHeadRefusal | undefined {
    const { fields } = this;
    if ((fields.seen & (1 << FIELD.underscored)) !== 0) return 'ambiguous-field-name';
    // RFC 9112 §3.2: a server must answer a request with several Host fields with a 400.
    if ((fields.repeated & (1 << FIELD.host)) !== 0) return 'several-hosts';
    const index = fields.indexOf(FIELD.host);
    // RFC 9112 §3.2: a server must answer an HTTP/1.1 request without Host with a 400, whatever the form of its target.
    if (index === -1) return this.minorVersion === 1 ? 'missing-host' : undefined;
    const start = fields.valueStart[index] as number;
    const end = fields.valueEnd[index] as number;
    const hostEnd = hostEndOf(bytes, start, end);
    const port = hostEnd === -1 ? -1 : portOf(bytes, hostEnd, end);
    // RFC 9112 §3.2: a server must answer a request with an invalid Host with a 400.
    if (port === -1) return 'invalid-host';
    if (this.targetForm === 'absolute') return this.#compareHost(bytes, { start, end: hostEnd, port });
    this.hostStart = start;
    this.hostEnd = hostEnd;
    this.port = port;
    return undefined;
  }

  /**
   * Compares the Host field with the target. RFC 9112 §3.2.2: the host of the target counts, and not the Host field. A
   * client sends the same in both (§3.2), so a difference may be an attempt to get past a server that reads only one of
   * them.
   */
  #compareHost(bytes: Uint8Array, host: HostPosition): RequestHeadRefusal | undefined {
    const isEqual =
      host.end - host.start === this.hostEnd - this.hostStart &&
      isSameHost(bytes, host.start, host.end, this.hostStart) &&
      (host.port || defaultPortOf(bytes, this.targetStart)) === (this.port || defaultPortOf(bytes, this.targetStart));
    return isEqual ? undefined : 'host-mismatch';
  }
}

interface HostPosition {
  readonly start: number;
  readonly end: number;
  readonly port: number;
}
