import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Maximum number of requests on one connection that are due but have no response. A further request means that the proxy is overloaded. */
const MAX_PENDING_REQUESTS = 512;
const HEAD_END = '\r\n\r\n';

/**
 * A kept HTTP/1.1 connection with one open request at a time. A request that is due while another is open waits. Requires the status 200
 * and the same body in every response.
 */
export class RequestConnection {
  readonly #socket: Socket;
  readonly #onEcho: (dueAt: number) => void;
  readonly #request: Buffer;
  readonly #expectedBody: string;
  readonly #dueTimes: number[] = [];
  #received = '';
  #bytesReceived = 0;

  static async open(options: RequestConnectionOptions): Promise<RequestConnection> {
    const connection = new RequestConnection(options);
    await once(connection.#socket, 'connect');
    return connection;
  }

  private constructor({ port, request, expectedBody, onEcho }: RequestConnectionOptions) {
    this.#onEcho = onEcho;
    this.#request = Buffer.from(request, 'latin1');
    this.#expectedBody = expectedBody;
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (text: string) => this.#receive(text));
  }

  get bytesReceived(): number {
    return this.#bytesReceived;
  }

  /** Ends the connection. Resolves when both sides have closed it. */
  async close(): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.end();
    await closed;
  }

  /** Sends a request, now or after the open request. Returns false if too many requests wait. `dueAt` is passed to `onEcho`. */
  send(dueAt: number): boolean {
    if (this.#dueTimes.length >= MAX_PENDING_REQUESTS) return false;
    this.#dueTimes.push(dueAt);
    if (this.#dueTimes.length === 1) this.#socket.write(this.#request);
    return true;
  }

  #receive(text: string): void {
    this.#bytesReceived += text.length;
    this.#received += text;
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const bodyStart = headEnd + HEAD_END.length;
    if (this.#received.length < bodyStart + this.#expectedBody.length) return;
    const dueAt = this.#dueTimes.shift();
    if (
      dueAt === undefined ||
      !this.#received.startsWith('HTTP/1.1 200 ') ||
      this.#received.slice(bodyStart) !== this.#expectedBody
    ) {
      this.#socket.destroy(new Error(`not the expected response: ${this.#received.slice(0, 200)}`));
      return;
    }
    this.#received = '';
    if (this.#dueTimes.length > 0) this.#socket.write(this.#request);
    this.#onEcho(dueAt);
  }
}

export type RequestConnectionOptions = {
  readonly port: number;
  readonly request: string;
  readonly expectedBody: string;
  /** Called for each response with the time at which its request was due. */
  readonly onEcho: (dueAt: number) => void;
};
