// A transport whose accepted streams terminate TLS, so that the stream contract runs over TLS.
import { connectClient } from '@weir/testkit';
import { ClientHelloReader } from '../../../src/protocol/client-hello-reader.ts';
import type {
  AcceptedStream,
  StreamEvents,
  TcpListenSocketEvents,
  TcpStream,
  TcpTransport,
} from '../../../src/transport/tcp-transport.ts';
import { startTls, type TlsServerOptions, type TlsServerStream } from '../../../src/transport/tls/tls-server.ts';
import { TRUSTING_CLIENT } from '../../fixtures/certificates.ts';
import type { StreamSetup } from '../tcp/stream-setup.ts';
import { testTlsServerOptions } from './tls-server-options.ts';

export function tlsTransport(name: string, below: TcpTransport): StreamSetup {
  const tls = testTlsServerOptions(below.tlsServer);
  return {
    name: `TLS on ${name}`,
    transport: {
      turns: below.turns,
      listen: (at, events) => below.listen(at, handshakeFirst(events, tls)),
      connect: (to, events) => below.connect(to, events),
    },
    connect: (options) => connectClient({ ...options, tls: TRUSTING_CLIENT }),
  };
}

function handshakeFirst(events: TcpListenSocketEvents, tls: TlsServerOptions): TcpListenSocketEvents {
  return {
    onListening: () => events.onListening(),
    onFailed: (code) => events.onFailed(code),
    onAcceptError: (code) => events.onAcceptError(code),
    onConnection: (stream) => void new ServerHandshake(stream, tls, (secured) => events.onConnection(secured)),
  };
}

class ServerHandshake implements StreamEvents {
  readonly #stream: AcceptedStream;
  readonly #tls: TlsServerOptions;
  readonly #onSecured: (stream: AcceptedStream) => void;
  readonly #reader = new ClientHelloReader();
  #secured: TlsServerStream | undefined;

  constructor(stream: AcceptedStream, tls: TlsServerOptions, onSecured: (stream: AcceptedStream) => void) {
    this.#stream = stream;
    this.#tls = tls;
    this.#onSecured = onSecured;
    stream.accept(this);
    stream.readStart();
  }

  onData(stream: TcpStream, bytes: Uint8Array): void {
    if (this.#reader.push(bytes) === 'more') return;
    stream.readStop();
    this.#secured = startTls(this.#stream, { tls: this.#tls, unread: this.#reader.bytes }, this);
  }

  onConnect(): void {
    // The cast is safe, because the contract tests do not detach a stream of this transport.
    if (this.#secured !== undefined) this.#onSecured(this.#secured.stream as AcceptedStream);
  }

  onEnd(): void {}
  onDrain(): void {}
  onClose(): void {}
  onThrow(_stream: TcpStream, thrown: unknown): void {
    throw thrown;
  }
}
