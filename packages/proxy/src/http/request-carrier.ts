import type { EndpointStats } from '@weir/model/data-plane';
import type { TcpStream } from '../transport/tcp-transport.ts';
import type { HeadFields } from './h1/head-fields.ts';
import type { ResponseHead } from './passes/response-passes.ts';

/** A request that a carrier carries to an endpoint. The carrier calls the methods as the response arrives. */
export interface Exchange {
  onConnected(): void;
  /**
   * Called with each head: any number of interim responses (1xx), then the final response. Returns the options of
   * Connection that the endpoint sent (bits of `CONNECTION_OPTION`), or undefined if the response cannot be relayed.
   */
  onResponseHead(head: ResponseHead): number | undefined;
  /** Called with data of the body, without framing, that are valid until the method returns. */
  onResponseData(bytes: Uint8Array, start: number, end: number): void;
  /** Called when the response is complete. The callee then calls `finish` of the carrier. */
  onResponseEnd(trailers: HeadFields | undefined, isReusable: boolean): void;
  /** Called after the other methods that belong to one read. */
  onReadEnd(): void;
  /** Called with bytes of another protocol, after a 101. */
  onOtherData(bytes: Uint8Array): void;
  onOtherEnd(): void;
  onDrain(): void;
  /** Called instead of `onResponseEnd` if the request has failed. The carrier has ended. */
  onFailed(failure: EndpointFailure, details: FailureDetails): void;
  onThrow(thrown: unknown): void;
}

/**
 * `closed`: the connection has ended, and no byte has arrived since the last head. `incomplete`: the connection has
 * ended, and a part of a head or of a body has arrived.
 * `refused`: the endpoint says that it has not processed the request. `reset`: the endpoint has reset the stream.
 * `other-version`: the endpoint is connected, but does not speak this version of HTTP. Nothing was sent.
 */
export type EndpointFailure =
  | 'not-connected'
  | 'closed'
  | 'incomplete'
  | 'invalid-response'
  | 'refused'
  | 'reset'
  | 'other-version';

export interface FailureDetails {
  /** The errno name of a failure of the connection. */
  readonly errno?: string | undefined;
  /** The HTTP/2 error code with which the endpoint has reset the stream (RFC 9113 §7). */
  readonly resetCode?: number | undefined;
}

export const NO_DETAILS: FailureDetails = {};

/**
 * The body of a request in HTTP/1.1 form. `unframed`: the head says that the body is chunked, but the body comes
 * without chunks, and `sendEnd` ends the body. `framed`: any other body; `sendEnd` ends the body too if the endpoint
 * may get HTTP/2.
 */
export type RequestBody = 'none' | 'framed' | 'unframed';

/** Where the response comes from. */
export type ResponseSource = Pick<
  TcpStream,
  'readStart' | 'readStop' | 'awaitsDrain' | 'bufferedBytes' | 'limitReadBytes' | 'setWindow'
>;

/** What carries one request at a time to an endpoint: an HTTP/1.1 connection or an HTTP/2 stream. */
export interface RequestCarrier {
  readonly stats: EndpointStats;
  readonly isConnected: boolean;
  /** Whether the connection has carried another request, so that the endpoint may have closed the connection meanwhile. */
  readonly isReused: boolean;
  readonly source: ResponseSource;
  /** How many of the sent bytes have certainly not left this process. 0 if the carrier does not know. */
  readonly unsentBytes: number;
  /** Carries a request from now on. `method` (`METHOD`) decides which responses have no body. */
  begin(exchange: Exchange, method: number, body: RequestBody): void;
  /** Sends bytes. The first call has the complete head. */
  send(bytes: Uint8Array): void;
  /** Ends a body. The trailers are complete lines `name: value` with CRLF. */
  sendEnd(trailers: Uint8Array): void;
  /** Sends FIN after the bytes of another protocol. */
  shutdown(): void;
  /**
   * Copies bytes of the request, so that the request can be sent again. `at` bytes were copied before. Returns the
   * length of the whole copy, or 0 if the carrier keeps no copy of this request.
   */
  copy(bytes: Uint8Array, at: number): number;
  /** Returns the copy, which has this length. Must not be called when the carrier carries another request. */
  copied(length: number): Uint8Array;
  /** Must be called when the response is complete. `isReusable`: the carrier may carry another request. */
  finish(isReusable: boolean): void;
  /** Gives up the request. No method of the exchange is called any more. */
  reset(): void;
}
