import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { HttpLoad, LoadClient, LoadRequest } from './http-load.ts';

export interface Http1ClientOptions {
  readonly name: string;
  connect(): Socket;
  /** How many requests are sent at once. Requests that are sent at once have bodies. */
  readonly pipelined: number;
  /** Whether each batch has a connection of its own. */
  readonly isKept: boolean;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly closes: boolean;
}

/** A client of HTTP/1.1, which sends its requests on one connection after the other. */
export class Http1Client implements LoadClient {
  readonly name: string;
  readonly #options: Http1ClientOptions;
  #connection: ClientConnection | undefined;

  constructor(options: Http1ClientOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async send(load: HttpLoad): Promise<void> {
    const { pipelined, isKept, connect } = this.#options;
    if (this.#connection?.hasEnded === true) this.close();
    this.#connection ??= new ClientConnection(connect());
    const connection = this.#connection;
    const requests = Array.from({ length: pipelined }, () => load.next({ hasBody: pipelined > 1 }));
    connection.write(requests.map((request) => requestBytes(request, isKept)));
    for (const [index, request] of requests.entries()) {
      const answer = await connection.answer();
      if (typeof answer === 'string') {
        // RFC 9112 §9.3.1: a client sends a request again if a kept connection has ended before.
        if (answer === 'end' && connection.answers > 0 && index === 0) load.onUnprocessed(this, requests.length);
        else load.onFailure(this, connection, answer);
        this.close();
        return;
      }
      load.onAnswer(this, request, { connection, ...answer });
      if (!answer.closes) continue;
      // RFC 9112 §9.6: the server processes no request behind a response with `close`.
      load.onUnprocessed(this, requests.length - index - 1);
      this.close();
      return;
    }
    if (!isKept) this.close();
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

export const overTcp = (at: { host: string; port: number }) => (): Socket => connectTcp({ ...at, noDelay: true });

export const overTls = (options: { host: string; port: number; ca: string; servername: string }) => (): Socket =>
  connectTls({ ...options, ALPNProtocols: ['http/1.1'] });

function requestBytes({ host, path, body, id }: LoadRequest, isKept: boolean): Buffer {
  const lines = [
    `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`,
    `Host: ${host}`,
    `X-Id: ${id}`,
    ...(body === undefined ? [] : [`Content-Length: ${body.length}`]),
    ...(isKept ? [] : ['Connection: close']),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body ?? Buffer.alloc(0)]);
}

class ClientConnection {
  /** How many answers have arrived. */
  answers = 0;
  readonly #socket: Socket;
  #received = '';
  /** Why the connection has ended: `end` after FIN, otherwise the code of an error. */
  #ended: string | undefined;
  #onChange: () => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#received += text;
      this.#onChange();
    });
    socket.on('end', () => this.#end('end'));
    socket.on('error', (error: NodeJS.ErrnoException) => this.#end(error.code ?? error.message));
    socket.on('close', () => this.#end('close'));
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  write(parts: readonly Buffer[]): void {
    this.#socket.write(Buffer.concat(parts));
  }

  /** Resolves with the next answer, or with the reason for which the connection has ended before. */
  async answer(): Promise<Answer | string> {
    for (;;) {
      const answer = this.#takeAnswer();
      if (answer !== undefined) return answer;
      if (this.#ended !== undefined) return this.#received === '' ? this.#ended : `${this.#ended} inside an answer`;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onChange = resolve;
      await promise;
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #takeAnswer(): Answer | undefined {
    const bodyStart = this.#received.indexOf('\r\n\r\n') + 4;
    if (bodyStart < 4) return undefined;
    const head = this.#received.slice(0, bodyStart);
    const bodyEnd = bodyStart + Number(/^content-length: *(\d+)/im.exec(head)?.[1]);
    if (this.#received.length < bodyEnd) return undefined;
    const text = this.#received.slice(bodyStart, bodyEnd);
    this.#received = this.#received.slice(bodyEnd);
    this.answers += 1;
    return { status: Number(head.slice(9, 12)), text, closes: /^connection: *close/im.test(head) };
  }

  #end(reason: string): void {
    this.#ended ??= reason;
    this.#onChange();
  }
}
