import { strict as assert } from 'node:assert';
import { integer, link, linkAddresses, NativeMemory, UNUSED } from './ffi.ts';

const {
  SSL_CTX_ctrl,
  SSL_CTX_free,
  SSL_free,
  SSL_set_bio,
  SSL_set_alpn_protos,
  SSL_set_connect_state,
  SSL_do_handshake,
  SSL_read,
  SSL_write,
  SSL_shutdown,
  SSL_key_update,
  BIO_write,
  BIO_read,
  ERR_clear_error,
} = link({
  SSL_CTX_ctrl: 4,
  SSL_CTX_free: 2,
  SSL_free: 2,
  SSL_set_bio: 3,
  SSL_set_alpn_protos: 3,
  SSL_set_connect_state: 2,
  SSL_do_handshake: 2,
  SSL_read: 3,
  SSL_write: 3,
  SSL_shutdown: 2,
  SSL_key_update: 2,
  BIO_write: 3,
  BIO_read: 3,
  ERR_clear_error: 2,
});
const { TLS_client_method, SSL_CTX_new, SSL_new, BIO_new, BIO_s_mem } = linkAddresses({
  TLS_client_method: 2,
  SSL_CTX_new: 2,
  SSL_new: 2,
  BIO_new: 2,
  BIO_s_mem: 2,
});

const SSL_CTRL_SET_MAX_PROTO_VERSION = 124n;
const SSL_KEY_UPDATE_REQUESTED = 1n;
const MEMORY_BYTES = 65_536;

export interface OpensslClientOptions {
  /** In the wire format of ALPN. */
  readonly alpn: Uint8Array;
  /** The number of the newest supported version; by default the newest of OpenSSL. */
  readonly maxVersion?: number;
}

/** A TLS client in memory that trusts every server, for the self-test and for tests. At most 65,536 bytes pass at once. */
export class OpensslClient implements Disposable {
  readonly #ssl: bigint;
  readonly #input = BIO_new(BIO_s_mem(UNUSED, UNUSED), UNUSED);
  readonly #output = BIO_new(BIO_s_mem(UNUSED, UNUSED), UNUSED);
  readonly #memory = new NativeMemory(MEMORY_BYTES);

  constructor({ alpn, maxVersion = 0 }: OpensslClientOptions) {
    const context = SSL_CTX_new(TLS_client_method(UNUSED, UNUSED), UNUSED);
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, integer(maxVersion), 0n);
    this.#ssl = SSL_new(context, UNUSED);
    // The connection keeps the context.
    SSL_CTX_free(context, UNUSED);
    assert(this.#ssl !== 0n && this.#input !== 0n && this.#output !== 0n, 'SSL_new');
    SSL_set_bio(this.#ssl, this.#input, this.#output);
    SSL_set_connect_state(this.#ssl, UNUSED);
    this.#memory.bytes.set(alpn);
    SSL_set_alpn_protos(this.#ssl, this.#address(alpn.length), integer(alpn.length));
  }

  /** Processes the bytes of the server, and returns whether the handshake is complete. */
  handshake(fromServer: Uint8Array): boolean {
    this.#feed(fromServer);
    return SSL_do_handshake(this.#ssl, UNUSED) === 1;
  }

  /** Processes the bytes of the server, and returns a copy of at most one record. Empty after close_notify or an error. */
  receive(fromServer: Uint8Array): Uint8Array {
    this.#feed(fromServer);
    const count = SSL_read(this.#ssl, this.#address(MEMORY_BYTES), integer(MEMORY_BYTES));
    return this.#memory.bytes.slice(0, Math.max(0, count));
  }

  send(bytes: Uint8Array): void {
    this.#memory.bytes.set(bytes);
    assert(SSL_write(this.#ssl, this.#address(bytes.length), integer(bytes.length)) === bytes.length, 'SSL_write');
  }

  /** Asks the server for new keys (RFC 8446 §4.6.3). Sent with the next bytes. */
  requestNewKeys(): void {
    assert(SSL_key_update(this.#ssl, SSL_KEY_UPDATE_REQUESTED) === 1, 'SSL_key_update');
  }

  sendCloseNotify(): void {
    SSL_shutdown(this.#ssl, UNUSED);
  }

  /** Returns a copy of what is to be sent to the server. */
  takeOutput(): Uint8Array {
    const count = BIO_read(this.#output, this.#address(MEMORY_BYTES), integer(MEMORY_BYTES));
    return this.#memory.bytes.slice(0, Math.max(0, count));
  }

  [Symbol.dispose](): void {
    SSL_free(this.#ssl, UNUSED);
  }

  #feed(bytes: Uint8Array): void {
    ERR_clear_error(UNUSED, UNUSED);
    this.#memory.bytes.set(bytes);
    if (bytes.length > 0) BIO_write(this.#input, this.#address(bytes.length), integer(bytes.length));
  }

  #address(length: number): bigint {
    return NativeMemory.addressOf(this.#memory, length);
  }
}
