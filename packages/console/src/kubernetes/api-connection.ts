// Requests to the API server over kept connections: rights are asked for by the dozen, and the client library's own transport makes
// a new TLS connection for each. From it come kubeconfig and its many ways to sign in.
import { createHash } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';

export interface ApiAnswer {
  readonly status: number;
  /** Undefined when it is no JSON. */
  readonly body: unknown;
}

export interface ApiConnectionOptions {
  readonly kubeconfig: KubeConfig;
  /** An API server that has not answered by then is away. */
  readonly timeoutMs: number;
}

/** The longest answer that is read. */
const LONGEST_ANSWER = 4 * 1024 * 1024;
const MOST_CONNECTIONS = 32;

const TLS_OPTIONS = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'rejectUnauthorized', 'servername'] as const;

export class ApiConnection {
  readonly #options: ApiConnectionOptions;
  readonly #server: URL;
  #pool: { readonly key: string; readonly agent: http.Agent } | undefined;

  constructor(options: ApiConnectionOptions) {
    this.#options = options;
    this.#server = new URL(options.kubeconfig.getCurrentCluster()?.server ?? '');
  }

  /** Any answer resolves; none rejects. */
  async send(method: string, path: string, body?: object): Promise<ApiAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const { headers, ...options } = await this.#signedIn();
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const request = (this.#server.protocol === 'http:' ? http : https).request({
      ...options,
      method,
      protocol: this.#server.protocol,
      hostname: this.#server.hostname.replace(/^\[|\]$/g, ''),
      port: this.#server.port,
      path: `${this.#server.pathname.replace(/\/$/, '')}${path}`,
      headers: {
        ...headers,
        'user-agent': 'weir-console',
        accept: 'application/json',
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
      signal: AbortSignal.timeout(this.#options.timeoutMs),
    });
    request.once('response', resolve);
    request.once('error', reject);
    request.end(text);
    const response = await promise;
    return { status: response.statusCode ?? 0, body: parsed(await textOf(response)) };
  }

  close(): void {
    this.#pool?.agent.destroy();
  }

  /** Tokens and certificates are read anew each time, as they are rotated; connections are kept while the certificates stay. */
  async #signedIn(): Promise<https.RequestOptions> {
    const options: https.RequestOptions = {};
    await this.#options.kubeconfig.applyToHTTPSOptions(options as never);
    const tls = Object.fromEntries(TLS_OPTIONS.map((name) => [name, options[name]]));
    const key = createHash('sha256').update(JSON.stringify(tls)).digest('hex');
    if (this.#pool?.key !== key) {
      this.#pool?.agent.destroy();
      const settings = { keepAlive: true, maxSockets: MOST_CONNECTIONS };
      const agent =
        this.#server.protocol === 'http:' ? new http.Agent(settings) : new https.Agent({ ...settings, ...tls });
      this.#pool = { key, agent };
    }
    const { headers, auth } = options;
    return { agent: this.#pool.agent, ...(headers ? { headers } : {}), ...(auth ? { auth } : {}) };
  }
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) {
    text += chunk;
    if (text.length > LONGEST_ANSWER) throw new Error('the answer of the API server is too long');
  }
  return text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
