// Streams of clients whose TLS ends here, as a transport: so that they are held to what every stream is held to.
import { connectRaw } from '@weir/testkit';
import type { AcceptedStream, ListenerEvents, StreamEvents, TcpStream, Transport } from '../../src/tcp/transport.ts';
import { createClientHelloReader } from '../../src/tls/client-hello-reader.ts';
import { type SecuredStream, secure } from '../../src/tls/tls-stream.ts';
import { TRUSTING } from '../fixtures/certificates.ts';
import type { World } from '../tcp/world.ts';
import { someTerms } from './some-terms.ts';

export function tlsWorld(name: string, below: Transport): World {
  return {
    name: `TLS on ${name}`,
    transport: {
      listen: (at, events) => below.listen(at, forward(events)),
      connect: (to, events) => below.connect(to, events),
    },
    connect: (options) => connectRaw({ ...options, tls: TRUSTING }),
  };
}

function forward(events: ListenerEvents): ListenerEvents {
  return {
    onListening: () => events.onListening(),
    onFailed: (code) => events.onFailed(code),
    onAcceptError: (code) => events.onAcceptError(code),
    onConnection: (stream) => void new Hello(stream, (secured) => events.onConnection(secured)),
  };
}

const TERMS = someTerms();

class Hello implements StreamEvents {
  readonly #stream: AcceptedStream;
  readonly #onSecured: (stream: AcceptedStream) => void;
  readonly #reader = createClientHelloReader();
  #secured: SecuredStream | undefined;

  constructor(stream: AcceptedStream, onSecured: (stream: AcceptedStream) => void) {
    this.#stream = stream;
    this.#onSecured = onSecured;
    stream.accept(this);
    stream.readStart();
  }

  onData(stream: TcpStream, bytes: Uint8Array): void {
    if (this.#reader.push(bytes) === 'more') return;
    stream.readStop();
    this.#secured = secure(this.#stream, { terms: TERMS, unread: this.#reader.bytes }, this);
  }

  onConnect(): void {
    // What is given away twice is no use of any test.
    if (this.#secured !== undefined) this.#onSecured(this.#secured.stream as AcceptedStream);
  }

  onEnd(): void {}
  onDrain(): void {}
  onClose(): void {}
  onThrow(_stream: TcpStream, thrown: unknown): void {
    throw thrown;
  }
}
