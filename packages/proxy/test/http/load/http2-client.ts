import { once } from 'node:events';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import type { HttpLoad, LoadClient, LoadRequest } from './http-load.ts';

export interface Http2ClientOptions {
  readonly name: string;
  /** The URL of the proxy. */
  readonly url: string;
  readonly tls: { readonly ca: string; readonly servername: string };
  /** How many requests are sent at once. */
  readonly streams: number;
}

/** A client of HTTP/2 over TLS, which opens another connection when the present one is closing. */
export class Http2Client implements LoadClient {
  readonly name: string;
  readonly #options: Http2ClientOptions;
  #session: ClientHttp2Session | undefined;
  /** Why the present session has failed. */
  #error: string | undefined;

  constructor(options: Http2ClientOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async send(load: HttpLoad): Promise<void> {
    const session = this.#openSession();
    const requests = Array.from({ length: this.#options.streams }, (_, index) =>
      load.next({ hasBody: index % 2 === 1 }),
    );
    await Promise.all(requests.map((request) => this.#ask(session, load, request)));
  }

  close(): void {
    this.#session?.destroy();
  }

  #openSession(): ClientHttp2Session {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) return this.#session;
    const session = connect(this.#options.url, this.#options.tls);
    session.on('error', (error: NodeJS.ErrnoException) => {
      this.#error = error.code ?? error.message;
    });
    this.#session = session;
    return session;
  }

  async #ask(session: ClientHttp2Session, load: HttpLoad, request: LoadRequest): Promise<void> {
    const { host, path, body, id } = request;
    const stream = session.request(
      { ':method': body === undefined ? 'GET' : 'POST', ':authority': host, ':path': path, 'x-id': id },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    let status = 0;
    let text = '';
    let cause = 'ended without an answer';
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0;
    });
    stream.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    stream.on('error', (error: NodeJS.ErrnoException) => {
      cause = error.code ?? error.message;
    });
    // A stream that `node:http2` cancels has neither `response` nor `error`.
    await once(stream, 'close').catch(() => undefined);
    // RFC 9113 §8.7: a refused request was not processed, and may be sent again.
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) load.onUnprocessed(this, 1);
    else if (status === 0 || stream.rstCode !== constants.NGHTTP2_NO_ERROR)
      load.onFailure(this, session, `${this.#error ?? cause}, stream error ${stream.rstCode}`);
    else load.onAnswer(this, request, { connection: session, status, text });
  }
}
