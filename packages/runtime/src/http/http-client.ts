import { createHash } from 'node:crypto';
import type http from 'node:http';
import type https from 'node:https';
import type { Socket } from 'node:net';

export interface HttpClientOptions {
  /** The URL of the server, such as `https://10.0.0.1:6443`, with an optional prefix of all paths. */
  readonly server: string;
  readonly userAgent: string;
  /** Headers and TLS options. Called for each request, because tokens and certificates are rotated. */
  readonly credentials: () => Promise<https.RequestOptions>;
  /** Whether requests go through an HTTP proxy: then the agent of `credentials` connects to the proxy. */
  readonly isProxied?: boolean;
  /** The maximum number of connections. Default: no limit. */
  readonly maxSockets?: number;
  /** Maps the error of a request that gets no response. */
  readonly wrapError?: (error: Error) => Error;
}

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** Called synchronously before the request is sent. If it throws, `send` rejects with the error and sends nothing. */
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

  /** Resolves with the response, whatever its status. Rejects if there is no response, or with the reason of `signal`. */
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
    // An agent's own options win over the options of a request, and may hold an old certificate.
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

/** Returns the module for a URL. Loads it at the first request, because most processes never need it. */
function moduleFor({ protocol }: URL): typeof http | typeof https {
  return protocol === 'http:' ? process.getBuiltinModule('node:http') : process.getBuiltinModule('node:https');
}

/** Calls `then` when the request is connected. A body that is written earlier would be sent without `beforeSending`. */
function onConnected(request: http.ClientRequest, then: () => void): void {
  const { TLSSocket } = process.getBuiltinModule('node:tls');
  request.once('socket', (socket: Socket) => {
    if (socket instanceof TLSSocket && !request.reusedSocket) socket.once('secureConnect', then);
    else if (socket.connecting) socket.once('connect', then);
    else then();
  });
}
