import { createHash } from 'node:crypto';
import type http from 'node:http';
import type https from 'node:https';
import type { Socket } from 'node:net';

export interface HttpClientOptions {
  /**
   * The URL of the server, such as `https://10.0.0.1:6443`. A path in the URL is a prefix of the paths of all requests.
   */
  readonly server: string;
  readonly userAgent: string;
  /** Returns headers and TLS options. Called for each request, because tokens and certificates are rotated. */
  readonly credentials: () => Promise<https.RequestOptions>;
  /** Whether requests go through an HTTP proxy. If so, the agent of `credentials` connects to the proxy. */
  readonly isProxied?: boolean;
  /** The maximum number of connections. Default: no limit. */
  readonly maxSockets?: number;
  /** Converts the error of a request that gets no response. */
  readonly wrapError?: (error: Error) => Error;
}

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /**
   * Called just before the request is sent. If `beforeSending` throws, nothing is sent and `send` rejects with the
   * error.
   */
  readonly beforeSending?: () => void;
}

const TLS_OPTIONS = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'rejectUnauthorized', 'servername'] as const;

/** Sends requests for JSON to one server. Keeps connections open until the TLS options change. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #server: URL;
  #pool: { readonly key: string; readonly agent: http.Agent } | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#server = new URL(options.server);
  }

  /** The origin of the server, without a path. */
  get server(): string {
    return this.#server.origin;
  }

  /**
   * Resolves with the response, whatever its status. Rejects if there is no response, and with the signal's reason if
   * the signal aborts.
   */
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
    const isProxyAgent = this.#options.isProxied === true && typeof agent === 'object';
    // Updates the agent's TLS options, because they override the options of a request and may have an old certificate.
    if (isProxyAgent) Object.assign((agent as https.Agent).options, tls);
    return { ...options, agent: isProxyAgent ? agent : this.#agentFor(tls), headers: { ...(headers as object) } };
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

/**
 * Returns `node:http` or `node:https`, depending on the URL. The first request loads the module, because most processes
 * never need it.
 */
function moduleFor({ protocol }: URL): typeof http | typeof https {
  return protocol === 'http:' ? process.getBuiltinModule('node:http') : process.getBuiltinModule('node:https');
}

/**
 * Calls `then` when the request has a connection. A body that is written earlier would be sent as soon as the request
 * is connected, without a call of `beforeSending`.
 */
function onConnected(request: http.ClientRequest, then: () => void): void {
  const { TLSSocket } = process.getBuiltinModule('node:tls');
  request.once('socket', (socket: Socket) => {
    if (socket instanceof TLSSocket && !request.reusedSocket) socket.once('secureConnect', then);
    else if (socket.connecting) socket.once('connect', then);
    else then();
  });
}
