// Requests over node:https with kept connections. The client library's own transport makes a new connection pool, so a new TLS
// handshake, for each request; from it we take what is worth having: kubeconfig and its many ways to sign in.
import { createHash } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { TLSSocket } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';
import { errorMessage } from '@weir/runtime';
import { ApiError } from './api-error.ts';

export interface RawRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** As of `ApiRequest`. */
  readonly beforeSending?: () => void;
}

const TLS_OPTIONS = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'rejectUnauthorized', 'servername'] as const;
const USER_AGENT = 'weir-controller';

export class Connection {
  readonly #config: KubeConfig;
  readonly #server: URL;
  #pool: { readonly key: string; readonly agent: http.Agent } | undefined;

  constructor(config: KubeConfig) {
    this.#config = config;
    this.#server = new URL(config.getCurrentCluster()?.server ?? '');
  }

  get server(): string {
    return this.#server.origin;
  }

  /** Resolves with the head of the answer; rejects with `ApiError` AWAY when there is none. */
  async send({ method, path, headers, body, signal, beforeSending }: RawRequest): Promise<http.IncomingMessage> {
    const options = await this.#options();
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const request = (this.#server.protocol === 'http:' ? http : https).request({
      ...options,
      method,
      protocol: this.#server.protocol,
      hostname: this.#server.hostname.replace(/^\[|\]$/g, ''),
      port: this.#server.port,
      path: `${this.#server.pathname.replace(/\/$/, '')}${path}`,
      headers: { ...options.headers, 'user-agent': USER_AGENT, accept: 'application/json', ...headers },
      signal,
    });
    request.once('response', resolve);
    request.once('error', (error) => reject(signal.aborted ? signal.reason : this.#away(error)));
    if (beforeSending === undefined) request.end(body);
    else
      whenConnected(request, () => {
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

  async #options(): Promise<https.RequestOptions & { readonly headers: http.OutgoingHttpHeaders }> {
    const options: https.RequestOptions & { headers: http.OutgoingHttpHeaders } = { headers: {} };
    try {
      // Reads certificates and tokens that are rotated on disk, runs credential plugins.
      await this.#config.applyToHTTPSOptions(options);
    } catch (error) {
      throw new ApiError('UNAUTHORIZED', `cannot sign in to the API server: ${errorMessage(error)}`, { cause: error });
    }
    const isProxied = this.#config.getCurrentCluster()?.proxyUrl !== undefined;
    const agent = isProxied ? options.agent : this.#agentFor(options);
    return { ...options, ...(agent !== undefined && { agent }) };
  }

  /** One pool, until the certificates change. */
  #agentFor(options: https.RequestOptions): http.Agent {
    const tls = Object.fromEntries(
      TLS_OPTIONS.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
    );
    const key = createHash('sha256').update(JSON.stringify(tls)).digest('hex');
    if (this.#pool?.key !== key) {
      const { agent: old } = this.#pool ?? {};
      const agent =
        this.#server.protocol === 'http:'
          ? new http.Agent({ keepAlive: true })
          : new https.Agent({ keepAlive: true, keepAliveMsecs: 30_000, ...tls });
      this.#pool = { key, agent };
      old?.destroy();
    }
    return this.#pool.agent;
  }

  #away(error: Error): ApiError {
    return new ApiError('AWAY', `the API server ${this.server} does not answer: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/** What is written to a request before is sent by itself as soon as it is connected, whenever that is. */
function whenConnected(request: http.ClientRequest, then: () => void): void {
  request.once('socket', (socket) => {
    if (socket instanceof TLSSocket && !request.reusedSocket) socket.once('secureConnect', then);
    else if (socket.connecting) socket.once('connect', then);
    else then();
  });
}
