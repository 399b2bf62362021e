import type { Limiters } from '../../limits/admission.ts';
import { SessionThrottle, type Shaper, type ThrottledReader } from '../../limits/shaper.ts';
import type { Http2Request } from './http2-request.ts';
import type { ResponsePacer } from './request-owner.ts';

/** Applies the bandwidth limits of another Service than that of the connection to the response of one request. */
export class SeparatePacer implements ResponsePacer, ThrottledReader {
  readonly #request: Http2Request;
  readonly #throttle: SessionThrottle;

  constructor(shaper: Shaper, limiters: Limiters, request: Http2Request) {
    this.#request = request;
    this.#throttle = new SessionThrottle(shaper, limiters, this);
  }

  onReadAllowed(): void {
    try {
      this.#request.resumeEndpoint();
    } catch (thrown) {
      this.#request.onThrow(thrown);
    }
  }

  mayRead(_request: Http2Request, sentBytes: number): boolean {
    return this.#throttle.mayRead('out', sentBytes);
  }

  waitsForBandwidth(): boolean {
    return this.#throttle.isThrottled;
  }

  /** The client may go on, because its next requests may belong to other Services. */
  endResponse(_request: Http2Request, sentBytes: number): void {
    if (sentBytes > 0) this.#throttle.mayRead('out', sentBytes);
    this.#throttle.end();
  }
}
