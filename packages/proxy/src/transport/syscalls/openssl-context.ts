// TLS server contexts of OpenSSL, whose functions the binary of Node.js exports. No other code shares a context with Node.js: `node:tls`
// has contexts of its own.
import { constants } from 'node:crypto';
import { callbackAddress, functionAddress, integer, link, linkAddresses, NativeMemory, textAt, UNUSED } from './ffi.ts';

const {
  SSL_CTX_free,
  SSL_CTX_ctrl,
  SSL_CTX_callback_ctrl,
  SSL_CTX_set_options,
  SSL_CTX_set_cipher_list,
  SSL_CTX_set_ciphersuites,
  SSL_CTX_set_session_id_context,
  SSL_CTX_use_certificate,
  SSL_CTX_use_PrivateKey,
  SSL_CTX_check_private_key,
  SSL_CTX_set_alpn_select_cb,
  SSL_select_next_proto,
  X509_free,
  EVP_PKEY_free,
  BIO_free,
  ERR_clear_error,
} = link({
  SSL_CTX_free: 2,
  SSL_CTX_ctrl: 4,
  SSL_CTX_callback_ctrl: 3,
  SSL_CTX_set_options: 2,
  SSL_CTX_set_cipher_list: 2,
  SSL_CTX_set_ciphersuites: 2,
  SSL_CTX_set_session_id_context: 3,
  SSL_CTX_use_certificate: 2,
  SSL_CTX_use_PrivateKey: 2,
  SSL_CTX_check_private_key: 2,
  SSL_CTX_set_alpn_select_cb: 3,
  SSL_select_next_proto: 6,
  X509_free: 2,
  EVP_PKEY_free: 2,
  BIO_free: 2,
  ERR_clear_error: 2,
});
const {
  TLS_server_method,
  SSL_CTX_new,
  BIO_new_mem_buf,
  PEM_read_bio_X509,
  PEM_read_bio_PrivateKey,
  ERR_peek_error,
  ERR_reason_error_string,
} = linkAddresses({
  TLS_server_method: 2,
  SSL_CTX_new: 2,
  BIO_new_mem_buf: 2,
  PEM_read_bio_X509: 4,
  PEM_read_bio_PrivateKey: 4,
  ERR_peek_error: 2,
  ERR_reason_error_string: 2,
});

/** Commands of SSL_CTX_ctrl(3) and their arguments. */
const SSL_CTRL_MODE = 33n;
const SSL_MODE_RELEASE_BUFFERS = 0x10n;
const SSL_CTRL_SET_SESS_CACHE_MODE = 44n;
const SSL_SESS_CACHE_OFF = 0n;
const SSL_CTRL_SET_TLSEXT_TICKET_KEYS = 59n;
const SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB = 63n;
const SSL_CTRL_CHAIN_CERT = 89n;
const SSL_CTRL_SET_MIN_PROTO_VERSION = 123n;
const TLS1_2_VERSION = 0x0303n;

/** Results of callbacks. */
const SSL_TLSEXT_ERR_OK = 0;
const SSL_TLSEXT_ERR_ALERT_FATAL = 2;
const SSL_TLSEXT_ERR_NOACK = 3;
const OPENSSL_NPN_NEGOTIATED = 1;

/** The name (16 bytes), the HMAC key and the AES key (32 each) with which OpenSSL protects session tickets. */
export const OPENSSL_TICKET_KEY_BYTES = 80;

export interface OpensslServerSettings {
  /** The certificate and the certificates of its issuers, in PEM. */
  readonly chain: string;
  /** In PEM, not encrypted. */
  readonly key: string;
  /** The cipher suites of TLS 1.3 and 1.2, separated by colons, preferred first. */
  readonly cipherSuites: { readonly tls13: string; readonly tls12: string };
  /** `OPENSSL_TICKET_KEY_BYTES` bytes. */
  readonly ticketKeys: Uint8Array;
  /** At most 32 ASCII characters. A session resumes only with the same context. */
  readonly sessionIdContext: string;
}

/** A failure of OpenSSL. `code` has the form of the codes of Node.js, for example `ERR_SSL_NO_SHARED_CIPHER`. */
export class OpensslError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`OpenSSL: ${code}`);
    this.code = code;
  }
}

/** Returns the code of the first error that OpenSSL has reported in this thread since the last `clearErrors`, and clears the errors. */
export function takeErrorCode(): string {
  const reason = textAt(ERR_reason_error_string(ERR_peek_error(UNUSED, UNUSED), UNUSED));
  ERR_clear_error(UNUSED, UNUSED);
  return reason === '' ? 'EPROTO' : `ERR_SSL_${reason.replaceAll(/[ -]/g, '_').toUpperCase()}`;
}

/** Frees a context when its object is no longer used. OpenSSL keeps a context for as long as a connection uses it. */
const abandonedContexts = new FinalizationRegistry<bigint>((pointer) => void SSL_CTX_free(pointer, UNUSED));

export class OpensslContext {
  readonly #pointer: bigint;

  /** Throws an `OpensslError` if OpenSSL rejects the certificate or the key. */
  constructor(settings: OpensslServerSettings) {
    this.#pointer = SSL_CTX_new(TLS_server_method(UNUSED, UNUSED), UNUSED);
    if (this.#pointer === 0n) throw new OpensslError(takeErrorCode());
    abandonedContexts.register(this, this.#pointer);
    ERR_clear_error(UNUSED, UNUSED);
    this.#configure(settings);
    this.#loadCredentials(settings);
  }

  static pointerOf(context: OpensslContext): bigint {
    return context.#pointer;
  }

  #configure({ cipherSuites, ticketKeys, sessionIdContext }: OpensslServerSettings): void {
    const pointer = this.#pointer;
    // OpenSSL reads 80 bytes.
    if (ticketKeys.length !== OPENSSL_TICKET_KEY_BYTES) throw new RangeError('wrong length of the ticket keys');
    const keys = nativeCopy(ticketKeys);
    const id = nativeCopy(Buffer.from(sessionIdContext, 'latin1'));
    const idBytes = integer(sessionIdContext.length);
    SSL_CTX_set_options(
      pointer,
      BigInt(constants.SSL_OP_NO_RENEGOTIATION) | BigInt(constants.SSL_OP_CIPHER_SERVER_PREFERENCE),
    );
    SSL_CTX_ctrl(pointer, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, 0n);
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, 0n);
    mustSucceed(SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, 0n));
    mustSucceed(SSL_CTX_set_ciphersuites(pointer, textAddress(cipherSuites.tls13)));
    mustSucceed(SSL_CTX_set_cipher_list(pointer, textAddress(cipherSuites.tls12)));
    mustSucceed(SSL_CTX_set_session_id_context(pointer, NativeMemory.addressOf(id, id.bytes.length), idBytes));
    const keysAddress = NativeMemory.addressOf(keys, OPENSSL_TICKET_KEY_BYTES);
    mustSucceed(SSL_CTX_ctrl(pointer, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, integer(OPENSSL_TICKET_KEY_BYTES), keysAddress));
    keys.bytes.fill(0);
    SSL_CTX_set_alpn_select_cb(pointer, alpnCallback, 0n);
    SSL_CTX_callback_ctrl(pointer, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, stapleCallback);
  }

  #loadCredentials({ chain, key }: OpensslServerSettings): void {
    withPem(chain, (bio) => {
      const certificate = PEM_read_bio_X509(bio, 0n, 0n, 0n);
      mustExist(certificate);
      const isUsed = SSL_CTX_use_certificate(this.#pointer, certificate);
      X509_free(certificate, UNUSED);
      mustSucceed(isUsed);
      for (;;) {
        const issuer = PEM_read_bio_X509(bio, 0n, 0n, 0n);
        // The error that nothing is left.
        if (issuer === 0n) break;
        // The context owns the certificate afterwards.
        mustSucceed(SSL_CTX_ctrl(this.#pointer, SSL_CTRL_CHAIN_CERT, 0n, issuer));
      }
      ERR_clear_error(UNUSED, UNUSED);
    });
    withPem(key, (bio) => {
      // With an empty passphrase, because OpenSSL would otherwise ask at the terminal.
      const loaded = PEM_read_bio_PrivateKey(bio, 0n, 0n, textAddress(''));
      mustExist(loaded);
      const isUsed = SSL_CTX_use_PrivateKey(this.#pointer, loaded);
      EVP_PKEY_free(loaded, UNUSED);
      mustSucceed(isUsed);
    });
    mustSucceed(SSL_CTX_check_private_key(this.#pointer, UNUSED));
  }
}

/** Calls `read` with a BIO of the text, and clears the memory. */
function withPem(text: string, read: (bio: bigint) => void): void {
  const memory = nativeCopy(Buffer.from(text));
  const length = memory.bytes.length;
  const bio = BIO_new_mem_buf(NativeMemory.addressOf(memory, length), integer(length));
  mustExist(bio);
  try {
    read(bio);
  } finally {
    BIO_free(bio, UNUSED);
    memory.bytes.fill(0);
  }
}

/** Memory that outlives the current call, because the address of an object does not keep the object alive. */
const texts = new NativeMemory(1_024);

/** Returns the address of a short text with a zero byte at its end. Valid until the next call. */
function textAddress(text: string): bigint {
  const length = texts.bytes.length;
  if (text.length >= length) throw new RangeError('text too long');
  texts.bytes[Buffer.from(texts.bytes.buffer, 0, length).write(text, 'latin1')] = 0;
  return NativeMemory.addressOf(texts, length);
}

function nativeCopy(bytes: Uint8Array): NativeMemory {
  const memory = new NativeMemory(bytes.length);
  memory.bytes.set(bytes);
  return memory;
}

function mustSucceed(result: number): void {
  if (result <= 0) throw new OpensslError(takeErrorCode());
}

function mustExist(pointer: bigint): void {
  if (pointer === 0n) throw new OpensslError(takeErrorCode());
}

// ALPN and OCSP staples. OpenSSL calls back while it processes a ClientHello.

const MAX_ALPN_BYTES = 1_024;
const offered = new NativeMemory(MAX_ALPN_BYTES);
const offeredAddress = NativeMemory.addressOf(offered, MAX_ALPN_BYTES);
let offeredProtocols: Uint8Array | undefined;
let offeredBytes = 0n;

/** Makes the next handshake step of this thread support these protocols, in the wire format of ALPN. The bytes must not change later. */
export function offerProtocols(alpn: Uint8Array): void {
  if (alpn === offeredProtocols) return;
  if (alpn.length > MAX_ALPN_BYTES) throw new RangeError('too many protocols');
  offered.bytes.set(alpn);
  offeredProtocols = alpn;
  offeredBytes = BigInt(alpn.length);
}

/** Chooses the first supported protocol that the client offers. RFC 7301 §3.2: without one, the handshake fails. */
const alpnCallback = callbackAddress(6, (_ssl, out, outLength, client, clientBytes) => {
  if (offeredBytes === 0n) return SSL_TLSEXT_ERR_NOACK;
  const result = SSL_select_next_proto(
    out as bigint,
    outLength as bigint,
    offeredAddress,
    offeredBytes,
    client as bigint,
    clientBytes as bigint,
  );
  return result === OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
});

/**
 * Sends the staple that the connection has, if it has one. The callback has to return zero, and SSL_is_dtls(3) returns zero for TLS, so
 * no JavaScript is needed.
 */
const stapleCallback = functionAddress('SSL_is_dtls');
