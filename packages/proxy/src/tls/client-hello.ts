// What the first message of a TLS client says (RFC 8446, 4.1.2), read without answering: where the connection goes, and
// later with which certificate it is met, is decided before anything is decrypted.

export interface ClientHello {
  /** `host_name` (RFC 6066, 3): lower case, no dot at the end. Null: none; an IP address is no name. With ECH the outer one. */
  readonly serverName: string | null;
  /** In the client's order (RFC 7301); each byte a character. */
  readonly alpn: readonly string[];
  /** Such as 0x0304 for TLS 1.3, in the client's order, without GREASE. */
  readonly versions: readonly number[];
}

export type ClientHelloFault =
  | 'not-tls'
  /** The hello of SSL 2 (RFC 8446, appendix D.5): never again. */
  | 'ssl2'
  | 'too-large'
  /** TLS, but something else than one whole ClientHello comes first. */
  | 'unexpected-message'
  | 'malformed'
  /** `server_name` holds what no host can be called. */
  | 'bad-server-name';
