// The interface to the TLS of clients. Each implementation passes `test/transport/tls/tls-stream.test.ts`.
import type { AcceptedStream, StreamEvents, TcpStream } from '../tcp-transport.ts';

/** An implementation of TLS for servers. */
export interface TlsServer {
  /** Throws an error with a `code` of OpenSSL if the certificate, the key or the CAs are broken or do not match. */
  createContext(settings: TlsServerSettings): TlsServerContext;
}

export interface TlsServerSettings {
  /** The certificate and the certificates of its issuers, in PEM. */
  readonly chain: string;
  /** In PEM. */
  readonly key: string;
  /** The CAs of client certificates in PEM; null if clients need no certificate. */
  readonly clientAuthorities: string | null;
  /** The cipher suites, preferred first. */
  readonly cipherSuites: readonly string[];
  /** At most 32 ASCII characters. A session resumes only with the same context. */
  readonly sessionIdContext: string;
  /** Derives the keys of session tickets. The implementations use different keys, because the formats of their tickets differ. */
  deriveTicketKeys(purpose: string, bytes: number): Buffer;
}

/** The certificate and settings for TLS handshakes. */
export interface TlsServerContext {
  /** See `startTls`. */
  start(from: AcceptedStream, options: StartTlsOptions, events: StreamEvents): TlsServerStream;
}

/** The server's settings for a TLS handshake. */
export interface TlsServerOptions {
  readonly context: TlsServerContext;
  /** The supported protocols, in the wire format of ALPN (RFC 7301). Empty to negotiate none. */
  readonly alpn: Uint8Array;
  /** Whether the client must present a certificate that is signed by a CA of `context`. */
  readonly requestsClientCertificate: boolean;
  /** The OCSP response (RFC 6066 §8, DER) for clients that ask for one; undefined if there is none. */
  readonly staple?: Uint8Array | undefined;
}

/** The result of a TLS handshake. */
export interface NegotiatedTls {
  /** The TLS version, for example `TLSv1.3`. */
  readonly version: string;
  /** The protocol negotiated with ALPN, or null if none was negotiated. */
  readonly alpn: string | null;
  /** Whether the client has presented a verified certificate. */
  readonly isVerified: boolean;
}

export interface HandshakingStream {
  readonly stream: TcpStream;
  /**
   * Reads and processes a part of the peer's handshake. Must be called after each call of `onInput`, until it returns
   * false.
   */
  readInput(): boolean;
}

export interface TlsServerStream extends HandshakingStream {
  /**
   * Returns the result of the handshake, or undefined if a required client certificate is missing or not valid. Must be
   * called after `onConnect`.
   */
  negotiated(now: number): NegotiatedTls | undefined;
}

export interface StartTlsOptions {
  readonly tls: TlsServerOptions;
  /** The bytes already read from the client, starting with the ClientHello. */
  readonly unread: Uint8Array;
  /**
   * Called when the client has sent more of its handshake, which waits for `readInput`. If absent, or if the transport
   * cannot hold the input back, the stream processes the input by itself.
   */
  readonly onInput?: () => void;
}

/**
 * Takes over the stream `from`, and processes `unread` before it returns. `onConnect` is called if the handshake succeeds;
 * only `onClose` is called if it fails. Both are called after `startTls` has returned. The returned stream reads nothing
 * before `readStart`.
 */
export function startTls(from: AcceptedStream, options: StartTlsOptions, events: StreamEvents): TlsServerStream {
  return options.tls.context.start(from, options, events);
}
