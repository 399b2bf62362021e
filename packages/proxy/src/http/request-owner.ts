import type { Admission } from '../limits/admission.ts';
import type { Window } from '../transport/tcp-transport.ts';
import type { HeadFields } from './h1/head-fields.ts';
import type { ErrorReason } from './passes/error-answer.ts';
import type { Exchange } from './request-carrier.ts';

/** The session whose requests are sent. */
export interface RequestOwner
  extends Pick<Exchange, 'onResponseHead' | 'onResponseData' | 'onReadEnd' | 'onOtherData'> {
  /** The admission of the request. Its tenant takes turns with others for TLS handshakes. */
  readonly admission: Pick<Admission, 'limiters'>;
  /** How many bytes a connection to an endpoint may buffer. */
  currentWindow(): Window;
  /** Called when the endpoint can take more of the request. */
  onEndpointReady(): void;
  /** Called when the request must not be read any more until `onEndpointReady`. */
  onEndpointFull(): void;
  /** Called before a connection attempt. It may take as long as the connect timeout of the Service. */
  onConnecting(): void;
  onResponseEnd(trailers: HeadFields | undefined): void;
  onOtherEnd(): void;
  /**
   * Called instead of `onResponseEnd`. A part of the response may have been relayed. `resetCode` is the HTTP/2 error
   * code if the endpoint has reset its stream.
   */
  onRequestFailed(reason: ErrorReason, resetCode?: number): void;
  onThrow(thrown: unknown): void;
}
