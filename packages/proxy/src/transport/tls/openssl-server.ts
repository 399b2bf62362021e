import { OPENSSL_TICKET_KEY_BYTES, OpensslContext } from '../syscalls/openssl-context.ts';
import { EpollStream } from '../tcp/epoll-stream.ts';
import type { AcceptedStream, StreamEvents } from '../tcp-transport.ts';
import { nodeTlsServer } from './node-tls-stream.ts';
import { OpensslStream } from './openssl-stream.ts';
import type {
  StartTlsOptions,
  TlsServer,
  TlsServerContext,
  TlsServerOptions,
  TlsServerSettings,
  TlsServerStream,
} from './tls-server.ts';

/** TLS through the functions of OpenSSL in the binary of Node.js, for the streams of `epollTransport`. */
export const opensslTlsServer: TlsServer = {
  createContext(settings) {
    // Node.js also checks the certificate and the key, with the same error codes as with `nodeTlsServer`.
    const context = nodeTlsServer.createContext(settings);
    // Only Node.js can verify client certificates.
    return settings.clientAuthorities === null ? new OpensslServerContext(settings) : context;
  },
};

class OpensslServerContext implements TlsServerContext {
  readonly #context: OpensslContext;

  constructor({ chain, key, cipherSuites, sessionIdContext, deriveTicketKeys }: TlsServerSettings) {
    const isTls13 = (suite: string): boolean => suite.startsWith('TLS_');
    this.#context = new OpensslContext({
      chain,
      key,
      cipherSuites: {
        tls13: cipherSuites.filter(isTls13).join(':'),
        tls12: cipherSuites.filter((suite) => !isTls13(suite)).join(':'),
      },
      ticketKeys: deriveTicketKeys('openssl-tickets', OPENSSL_TICKET_KEY_BYTES),
      sessionIdContext,
    });
  }

  start(from: AcceptedStream, { tls, unread, onInput }: StartTlsOptions, events: StreamEvents): TlsServerStream {
    if (!(from instanceof EpollStream)) throw new Error('not a stream of the epoll transport');
    const stream = openStream(from, { context: this.#context, tls, unread, onInput }, events);
    return {
      stream,
      readInput() {
        from.readNow();
        return false;
      },
      negotiated: () => ({
        version: stream.connection.version,
        alpn: stream.connection.protocol ?? null,
        isVerified: false,
      }),
    };
  }
}

interface OpenOptions {
  readonly context: OpensslContext;
  readonly tls: TlsServerOptions;
  readonly unread: Uint8Array;
  readonly onInput: (() => void) | undefined;
}

/** Opens the stream. If that fails, closes the stream below, because nothing else owns the descriptor. */
function openStream(
  from: EpollStream,
  { context, tls, unread, onInput }: OpenOptions,
  events: StreamEvents,
): OpensslStream {
  try {
    const stream = new OpensslStream(from, { context, alpn: tls.alpn, staple: tls.staple, onInput }, events);
    stream.start(unread);
    return stream;
  } catch (thrown) {
    from.close();
    throw thrown;
  }
}
