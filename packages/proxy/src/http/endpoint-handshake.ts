import type { HandshakeQueue, WaitingHandshake } from '../accept/handshake-queue.ts';
import type {
  DetachableStream,
  SocketAddress,
  StreamEvents,
  TcpStream,
  TcpTransport,
} from '../transport/tcp-transport.ts';
import { startClientTls, type TlsClientOptions } from '../transport/tls/node-tls-stream.ts';
import type { HandshakingStream } from '../transport/tls/tls-server.ts';

/** The connection to an endpoint that owns the stream. */
export interface HandshakeOwner extends StreamEvents {
  stream: TcpStream;
  readonly hasEnded: boolean;
}

export interface EndpointHandshakeOptions {
  readonly owner: HandshakeOwner;
  readonly tls: Omit<TlsClientOptions, 'onInput'>;
  readonly queue: Pick<HandshakeQueue, 'addBegun'>;
  /** The tenant of the endpoint, see `HandshakeQueue`. */
  readonly tenant: object;
}

/**
 * The TLS handshake with an endpoint. The steps of the handshake wait in the same queue as the handshakes with clients,
 * in which the tenants take turns, so that no tenant can occupy the worker with expensive handshakes of its endpoints.
 * This object handles the events of the plain stream; `owner` gets the encrypted stream.
 */
export class EndpointHandshake implements StreamEvents, WaitingHandshake {
  readonly #options: EndpointHandshakeOptions;
  #plain: DetachableStream | undefined;
  /** Undefined until the ClientHello is sent. */
  #secured: HandshakingStream | undefined;
  #hasClosed = false;
  #isStepQueued = false;

  constructor(options: EndpointHandshakeOptions) {
    this.#options = options;
  }

  get hasEnded(): boolean {
    return this.#hasClosed || this.#options.owner.hasEnded;
  }

  step(): void {
    this.#isStepQueued = false;
    try {
      if (this.#secured === undefined) this.#begin();
      else if (this.#secured.readInput()) this.#queueStep();
    } catch (thrown) {
      const { owner } = this.#options;
      owner.onThrow(owner.stream, thrown);
    }
  }

  /** Connects to an endpoint. Returns the plain stream. */
  connect(to: SocketAddress, transport: TcpTransport): TcpStream {
    this.#plain = transport.connect(to, this);
    return this.#plain;
  }

  onConnect(): void {
    this.#queueStep();
  }

  onData(): void {}

  onEnd(): void {}

  onDrain(): void {}

  onClose(stream: TcpStream, code: string | undefined): void {
    this.#hasClosed = true;
    this.#options.owner.onClose(stream, code);
  }

  onThrow(stream: TcpStream, thrown: unknown): void {
    this.#options.owner.onThrow(stream, thrown);
  }

  #begin(): void {
    const { owner, tls } = this.#options;
    const plain = this.#plain;
    if (plain === undefined) throw new Error('a handshake has begun before the connection');
    const onInput = (): void => this.#queueStep();
    this.#secured = startClientTls(plain, { ...tls, onInput }, owner);
    owner.stream = this.#secured.stream;
  }

  #queueStep(): void {
    if (this.hasEnded || this.#isStepQueued) return;
    this.#isStepQueued = true;
    const { queue, tenant } = this.#options;
    queue.addBegun(tenant, this);
  }
}
