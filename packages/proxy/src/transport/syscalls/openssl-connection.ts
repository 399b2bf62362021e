// One TLS connection of OpenSSL, as a machine that turns bytes into bytes: OpenSSL never sees a descriptor.
//
// All connections of a thread share two memory BIOs, because a connection keeps nothing in them: each call of a method passes the bytes of
// one peer through them and leaves them empty, also after an error. So a waiting connection needs no buffers, and no bytes reach another
// connection.
import { strict as assert } from 'node:assert';
import { bytesAt, integer, link, linkAddresses, linkCallingBack, NativeMemory, structure, UNUSED } from './ffi.ts';
import { OpensslContext, OpensslError, offerProtocols, takeErrorCode } from './openssl-context.ts';

const {
  SSL_free,
  SSL_set_accept_state,
  SSL_set_bio,
  SSL_read,
  SSL_write,
  SSL_shutdown,
  SSL_get_error,
  SSL_version,
  SSL_get0_alpn_selected,
  SSL_ctrl,
  BIO_up_ref,
  BIO_write,
  BIO_read,
  BIO_ctrl,
  BIO_ctrl_pending,
  ERR_clear_error,
} = link({
  SSL_free: 2,
  SSL_set_accept_state: 2,
  SSL_set_bio: 3,
  SSL_read: 3,
  SSL_write: 3,
  SSL_shutdown: 2,
  SSL_get_error: 2,
  SSL_version: 2,
  SSL_get0_alpn_selected: 3,
  SSL_ctrl: 4,
  BIO_up_ref: 2,
  BIO_write: 3,
  BIO_read: 3,
  BIO_ctrl: 4,
  BIO_ctrl_pending: 2,
  ERR_clear_error: 2,
});
const { SSL_new, BIO_new, BIO_s_mem, CRYPTO_malloc, memcpy } = linkAddresses({
  SSL_new: 2,
  BIO_new: 2,
  BIO_s_mem: 2,
  CRYPTO_malloc: 3,
  memcpy: 3,
});
/** Calls the callbacks of `openssl-context.ts`. */
const SSL_do_handshake = linkCallingBack('SSL_do_handshake');

const BIO_CTRL_RESET = 1n;
const SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP = 71n;
const SSL_ERROR_WANT_READ = 2;
const SSL_ERROR_ZERO_RETURN = 6;
const VERSION_NAMES: Readonly<Record<number, string>> = { 771: 'TLSv1.2', 772: 'TLSv1.3' };

/** The maximum payload of a TLS record, which is also the most that SSL_read(3) returns. */
const MAX_RECORD_BYTES = 16_384;
const MAX_RECORD_LENGTH = BigInt(MAX_RECORD_BYTES);
/** The maximum number of bytes that one call of `seal` encrypts. */
export const MAX_SEALED_BYTES = 131_072;

const input = newMemoryBio();
const output = newMemoryBio();
const selection = structure(16);

/** The connection whose output has not been taken. */
let writer: OpensslConnection | undefined;

/** Must be called before OpenSSL may write output. Discards what another connection has left after an exception. */
function beginOutput(connection: OpensslConnection): void {
  ERR_clear_error(UNUSED, UNUSED);
  if (writer !== undefined && writer !== connection) BIO_ctrl(output, BIO_CTRL_RESET, 0n, 0n);
  writer = connection;
}

function newMemoryBio(): bigint {
  const bio = BIO_new(BIO_s_mem(UNUSED, UNUSED), UNUSED);
  assert(bio !== 0n, 'BIO_new');
  return bio;
}

export class OpensslConnection {
  /** 0 after `free`. */
  #ssl: bigint;
  readonly #alpn: Uint8Array;
  /** Whether the handshake is complete. */
  isEstablished = false;
  /** Whether the peer has sent close_notify. */
  hasEnded = false;
  /** The error code after which the connection cannot be used. */
  failure: string | undefined;

  /** `alpn` are the supported protocols in the wire format of ALPN. */
  constructor(context: OpensslContext, { alpn, staple }: { alpn: Uint8Array; staple: Uint8Array | undefined }) {
    this.#alpn = alpn;
    ERR_clear_error(UNUSED, UNUSED);
    this.#ssl = SSL_new(OpensslContext.pointerOf(context), UNUSED);
    if (this.#ssl === 0n) throw new OpensslError(takeErrorCode());
    BIO_up_ref(input, UNUSED);
    BIO_up_ref(output, UNUSED);
    SSL_set_bio(this.#ssl, input, output);
    SSL_set_accept_state(this.#ssl, UNUSED);
    if (staple !== undefined) this.#setStaple(staple);
  }

  /**
   * Processes the first `length` bytes of the memory, which the peer has sent. Overwrites the memory with the decrypted bytes, and returns
   * their number. Afterwards, the output must be taken.
   */
  receive(memory: NativeMemory, length: number): number {
    if (this.#ssl === 0n || this.failure !== undefined || this.hasEnded) return 0;
    const address = NativeMemory.addressOf(memory, length);
    beginOutput(this);
    try {
      const taken = BIO_write(input, address, integer(length));
      assert(taken === length, 'BIO_write');
      return this.isEstablished || this.#continueHandshake() ? this.#decrypt(memory) : 0;
    } finally {
      // After an error or close_notify, the input may have more.
      if (BIO_ctrl_pending(input, UNUSED) > 0) BIO_ctrl(input, BIO_CTRL_RESET, 0n, 0n);
    }
  }

  /** Encrypts a range of the memory. Afterwards, the output must be taken. Returns false if the connection cannot send. */
  seal(memory: NativeMemory, start: number, length: number): boolean {
    if (this.#ssl === 0n || this.failure !== undefined || !this.isEstablished) return false;
    assert(length > 0 && length <= MAX_SEALED_BYTES, 'length');
    beginOutput(this);
    const result = SSL_write(this.#ssl, NativeMemory.addressOfRange(memory, start, length), integer(length));
    if (result !== length) this.failure = takeErrorCode();
    return result === length;
  }

  /** Adds close_notify to the output. */
  sendCloseNotify(): void {
    if (this.#ssl === 0n || this.failure !== undefined || !this.isEstablished) return;
    beginOutput(this);
    if (SSL_shutdown(this.#ssl, UNUSED) < 0) ERR_clear_error(UNUSED, UNUSED);
  }

  /**
   * Moves the output of this connection into the memory, and returns its length. The memory must be larger than the records of `MAX_SEALED_BYTES` and than
   * the server's part of a handshake.
   */
  takeOutput(memory: NativeMemory): number {
    if (writer !== this) return 0;
    writer = undefined;
    const { length: size } = memory.bytes;
    const length = BIO_read(output, NativeMemory.addressOf(memory, size), integer(size));
    if (length < size) return Math.max(0, length);
    BIO_ctrl(output, BIO_CTRL_RESET, 0n, 0n);
    throw new Error('too much output of OpenSSL');
  }

  /** The version of TLS, for example `TLSv1.3`. */
  get version(): string {
    return this.#ssl === 0n ? '' : (VERSION_NAMES[SSL_version(this.#ssl, UNUSED)] ?? '');
  }

  /** The protocol that ALPN has selected. */
  get protocol(): string | undefined {
    if (this.#ssl === 0n) return undefined;
    selection.words.fill(0);
    SSL_get0_alpn_selected(this.#ssl, selection.pointer, selection.pointer + 8n);
    const length = selection.words[2] as number;
    return length === 0 ? undefined : bytesAt(selection.view.getBigUint64(0, true), length).toString('latin1');
  }

  /** Frees the memory of the connection. Later calls do nothing. */
  free(): void {
    const ssl = this.#ssl;
    this.#ssl = 0n;
    if (ssl !== 0n) SSL_free(ssl, UNUSED);
  }

  #continueHandshake(): boolean {
    offerProtocols(this.#alpn);
    const result = SSL_do_handshake(this.#ssl);
    this.isEstablished = result === 1;
    if (!this.isEstablished) this.#checkError(result);
    return this.isEstablished;
  }

  #decrypt(memory: NativeMemory): number {
    let count = 0;
    do {
      const result = SSL_read(
        this.#ssl,
        NativeMemory.addressOfRange(memory, count, MAX_RECORD_BYTES),
        MAX_RECORD_LENGTH,
      );
      if (result <= 0) {
        this.#checkError(result);
        return count;
      }
      count += result;
      // Without read-ahead, OpenSSL takes at most one record from the input, so an empty input means that no record is left.
    } while (BIO_ctrl_pending(input, UNUSED) > 0);
    return count;
  }

  /** Records why OpenSSL does not go on, unless it only waits for more input. */
  #checkError(result: number): void {
    const error = SSL_get_error(this.#ssl, BigInt.asUintN(32, BigInt(result)));
    if (error === SSL_ERROR_WANT_READ) return;
    if (error === SSL_ERROR_ZERO_RETURN) this.hasEnded = true;
    else this.failure = takeErrorCode();
  }

  #setStaple(response: Uint8Array): void {
    const source = new NativeMemory(response.length);
    source.bytes.set(response);
    const length = integer(response.length);
    const copy = CRYPTO_malloc(length, 0n, 0n);
    assert(copy !== 0n, 'CRYPTO_malloc');
    memcpy(copy, NativeMemory.addressOf(source, response.length), length);
    // OpenSSL owns the copy afterwards.
    SSL_ctrl(this.#ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, length, copy);
  }
}
