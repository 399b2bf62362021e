import { createHash } from 'node:crypto';
import type http from 'node:http';
import type https from 'node:https';
import type { Socket } from 'node:net';

export interface HttpClientOptions {
  /** As `https://10.0.0.1:6443`, perhaps with a path before all others. */
  readonly server: string;
  readonly userAgent: string;
  /** Headers and TLS of the next request: asked for each time, since tokens and certificates are rotated. */
  readonly credentials: () => Promise<https.RequestOptions>;
  /** Through a proxy: the agent that comes with the credentials leads there. */
  readonly isProxied?: boolean;
  /** At once; default: as many as there are requests. */
  readonly maxSockets?: number;
  /** What a request that gets no answer is rejected with. */
  readonly wrapError?: (error: Error) => Error;
}

export interface HttpRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** Called in the turn in which the request leaves; what it throws is what `send` rejects with, and nothing was sent. */
  readonly beforeSending?: () => void;
}

const TLS_OPTIONS = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'rejectUnauthorized', 'servername'] as const;

/** Requests for JSON to one server, over connections that are kept for as long as the certificates are the same. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #server: URL;
  #pool: { readonly key: string; readonly agent: http.Agent } | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#server = new URL(options.server);
  }

  /** Without the path. */
  get server(): string {
    return this.#server.origin;
  }

  /** Resolves with the head of any answer; rejects when there is none, or with the reason of the signal. */
  async send({ method, path, headers, body, signal, beforeSending }: HttpRequest): Promise<http.IncomingMessage> {
    const { userAgent, wrapError = (error) => error } = this.#options;
    const options = await this.#requestOptions();
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const request = moduleFor(this.#server).request({
      ...options,
      method,
      protocol: this.#server.protocol,
      hostname: this.#server.hostname.replace(/^\[|\]$/g, ''),
      port: this.#server.port,
      path: `${this.#server.pathname.replace(/\/$/, '')}${path}`,
      headers: { ...options.headers, 'user-agent': userAgent, accept: 'application/json', ...headers },
      signal,
    });
    request.once('response', resolve);
    request.once('error', (error) => reject(signal.aborted ? signal.reason : wrapError(error)));
    if (beforeSending === undefined) request.end(body);
    else
      onConnected(request, () => {
        try {
          beforeSending();
          request.end(body);
        } catch (error) {
          reject(error);
          request.destroy();
        }
      });
    return promise;
  }

  close(): void {
    this.#pool?.agent.destroy();
  }

  async #requestOptions(): Promise<https.RequestOptions & { readonly headers: http.OutgoingHttpHeaders }> {
    const { headers, agent, ...options } = await this.#options.credentials();
    const tls = Object.fromEntries(TLS_OPTIONS.map((name) => [name, options[name]]));
    const isThere = this.#options.isProxied === true && typeof agent === 'object';
    // An agent prefers its own options to those of a request, and may be older than the certificates.
    if (isThere) Object.assign((agent as https.Agent).options, tls);
    return { ...options, agent: isThere ? agent : this.#agentFor(tls), headers: { ...(headers as object) } };
  }

  #agentFor(tls: https.AgentOptions): http.Agent {
    const key = createHash('sha256').update(JSON.stringify(tls)).digest('hex');
    if (this.#pool?.key !== key) {
      this.#pool?.agent.destroy();
      const { maxSockets = Number.POSITIVE_INFINITY } = this.#options;
      const agent = new (moduleFor(this.#server).Agent)({
        keepAlive: true,
        keepAliveMsecs: 30_000,
        maxSockets,
        ...tls,
      });
      this.#pool = { key, agent };
    }
    return this.#pool.agent;
  }
}

/** Loaded by the first request: most processes never need it. */
function moduleFor({ protocol }: URL): typeof http | typeof https {
  return protocol === 'http:' ? process.getBuiltinModule('node:http') : process.getBuiltinModule('node:https');
}

/** What is written to a request before is sent by itself as soon as it is connected, whenever that is. */
function onConnected(request: http.ClientRequest, then: () => void): void {
  const { TLSSocket } = process.getBuiltinModule('node:tls');
  request.once('socket', (socket: Socket) => {
    if (socket instanceof TLSSocket && !request.reusedSocket) socket.once('secureConnect', then);
    else if (socket.connecting) socket.once('connect', then);
    else then();
  });
}
