// The stream of a client whose TLS ends here: bytes are read and written in the clear, and never past its TLSSocket: what is
// written to the descriptor goes out unencrypted.
import { Socket } from 'node:net';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import { type NetStream, streamOn } from '../tcp/net-stream.ts';
import { isSendingFin, type SocketWays } from '../tcp/socket-ways.ts';
import type { AcceptedStream, StreamEvents, TcpStream } from '../tcp/transport.ts';
import { innerTls } from './inner-tls.ts';
import { nodeTls } from './node-tls.ts';

/** On which a client is met. */
export interface TlsTerms {
  readonly context: SecureContext;
  /** Protocols as ALPN writes them (RFC 7301); empty: none is agreed on. */
  readonly alpn: Uint8Array;
  /** It must show a certificate of one of the CAs of `context`. */
  readonly asksForCertificate: boolean;
}

/** What a handshake came to. */
export interface TlsAgreement {
  /** `TLSv1.3` */
  readonly version: string;
  /** Null: none. */
  readonly alpn: string | null;
  /** The client has shown a certificate that is believed. */
  readonly isVerified: boolean;
}

export interface SecuredStream {
  readonly stream: TcpStream;
  /** From `onConnect` on; undefined: the client must show a certificate that is believed, and has not. */
  agreement(now: number): TlsAgreement | undefined;
}

export interface SecureOptions {
  readonly terms: TlsTerms;
  /** The ClientHello, and what came behind it. */
  readonly unread: Uint8Array;
}

/**
 * Takes the stream, which is not to be used any more, and makes the handshake: `onConnect` says that it is done, `onClose` without
 * it that it has failed. In the clear it does not read before `readStart`.
 */
export function secure(from: AcceptedStream, { terms, unread }: SecureOptions, events: StreamEvents): SecuredStream {
  const { context, alpn, asksForCertificate } = terms;
  const raw = from.toSocket(unread);
  // It tells the TLSSocket, which tells us.
  raw.on('error', ignore);
  const socket = tlsSocketOn(raw, {
    isServer: true,
    secureContext: context,
    requestCert: asksForCertificate,
    rejectUnauthorized: asksForCertificate,
    ...(alpn.length > 0 ? { ALPNProtocols: alpn } : {}),
  });
  socket[RAW] = raw;
  const stream = streamOn(socket, TLS, events);
  socket[STREAM] = stream;
  socket.push = push;
  socket.on('secure', onSecure);
  socket.on('_tlsError', onTlsError);
  return { stream, agreement: (now) => agreementOf(socket, { asksForCertificate, now }) };
}

/** Whatever it throws: nobody else has the descriptor any more. */
function tlsSocketOn(raw: Socket, options: TLSSocketOptions): Secured {
  try {
    return new (nodeTls().TLSSocket)(raw, options) as Secured;
  } catch (thrown) {
    raw.destroy();
    throw thrown;
  }
}

const RAW = Symbol('raw');
const STREAM = Symbol('stream of');
const IS_CUT = Symbol('is cut');

interface Secured extends TLSSocket {
  [RAW]: Socket;
  [STREAM]: NetStream;
  [IS_CUT]?: boolean;
}

/** As many records as Node hands to the kernel in one go. */
const MOST_AT_ONCE = 131_072;

/** Of which all parts go to the kernel in one go. */
const ONE_RECORD = 16_384;

const TLS: SocketWays = {
  mostAtOnce: MOST_AT_ONCE,
  write(socket, bytes, { isOurs, onWritten }) {
    // With no write before it that waits, it is encrypted before the call returns: only who waits must not share memory.
    socket.write(isOurs || socket.writableLength === 0 ? bytes : Buffer.from(bytes), onWritten);
  },
  // Node says so only in the next turn: to wait for it would stop and start the other side for each message.
  hasTaken: (socket, length) => length <= ONE_RECORD && innerTls.isTaken(rawOf(socket)),
  reset(socket) {
    if (!isSendingFin(socket)) resetNow.call(socket as Secured);
    // libuv refuses to reset while a FIN waits: for its turn, or, which is rare, for a client that reads nothing.
    else if (innerTls.isTaken(rawOf(socket))) socket.once('finish', resetNow);
    else socket.destroy();
  },
  probe(socket) {
    const code = innerTls.failureOf(rawOf(socket));
    if (code !== undefined) failWith(socket as Secured, code);
  },
  faultOfEnd: (socket) => ((socket as Secured)[IS_CUT] === true && !socket.writableEnded ? 'ECONNRESET' : undefined),
};

function rawOf(socket: Socket): Socket {
  return (socket as Secured)[RAW];
}

function resetNow(this: Secured): void {
  if (this.destroyed) return;
  innerTls.resetWhenClosed(this[RAW]);
  this.destroy();
}

/**
 * RFC 8446, 6.1: only close_notify is the end of what the peer has to say, for anybody on the way can send a FIN; where ours
 * is out already, its answer may be a FIN alone, as many send it.
 */
function push(this: Secured, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null) this[IS_CUT] = innerTls.isCut(this, this[RAW]);
  return Socket.prototype.push.call(this, chunk, encoding);
}

function onSecure(this: Secured): void {
  this[STREAM].tell('onConnect');
}

/** Its alert, if it is one of ours, is on its way. */
function onTlsError(this: Secured, error: NodeJS.ErrnoException): void {
  failWith(this, error.code ?? 'EPROTO');
}

/** The TLSSocket first, always: it does not survive (Node ends by a fault) that the socket below is closed before it. */
function failWith(socket: Secured, code: string): void {
  socket[STREAM].failed(code);
  socket.destroy();
}

function ignore(): void {}

function agreementOf(
  socket: TLSSocket,
  { asksForCertificate, now }: { asksForCertificate: boolean; now: number },
): TlsAgreement | undefined {
  if (asksForCertificate && !isBelieved(socket, now)) return undefined;
  const { alpnProtocol } = socket;
  return {
    version: socket.getProtocol() ?? '',
    alpn: typeof alpnProtocol === 'string' ? alpnProtocol : null,
    isVerified: asksForCertificate,
  };
}

/** Node lets any certificate pass, for its owner to judge. That of a session that is resumed may have ended meanwhile. */
function isBelieved(socket: TLSSocket, now: number): boolean {
  const certificate = socket.getPeerX509Certificate();
  return certificate !== undefined && innerTls.isVerified(socket) && certificate.validToDate.getTime() > now;
}
