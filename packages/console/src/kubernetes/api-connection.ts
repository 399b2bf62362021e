// Rights are asked for by the dozen, and the client library's own transport makes a new TLS connection for each. From it come kubeconfig
// and its many ways to sign in.
import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { HttpClient } from '@weir/runtime';

export interface ApiResponse {
  readonly status: number;
  /** Undefined when it is no JSON. */
  readonly body: unknown;
}

export interface ApiClientOptions {
  readonly kubeconfig: KubeConfig;
  /** An API server that has not answered by then is away. */
  readonly timeoutMs: number;
}

/** The longest answer that is read. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const MAX_CONNECTIONS = 32;

export class ApiClient {
  readonly #connection: HttpClient;
  readonly #timeoutMs: number;

  constructor({ kubeconfig, timeoutMs }: ApiClientOptions) {
    this.#timeoutMs = timeoutMs;
    const { server = '', proxyUrl } = kubeconfig.getCurrentCluster() ?? {};
    this.#connection = new HttpClient({
      server,
      isProxied: proxyUrl !== undefined,
      userAgent: 'weir-console',
      maxSockets: MAX_CONNECTIONS,
      async credentials() {
        const options: RequestOptions = {};
        await kubeconfig.applyToHTTPSOptions(options);
        return options;
      },
    });
  }

  /** Any answer resolves; none rejects. */
  async send(method: string, path: string, body?: object): Promise<ApiResponse> {
    const response = await this.#connection.send({
      method,
      path,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    return { status: response.statusCode ?? 0, body: parseJson(await readText(response)) };
  }

  close(): void {
    this.#connection.close();
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) {
    text += chunk;
    if (text.length > MAX_RESPONSE_BYTES) throw new Error('the answer of the API server is too long');
  }
  return text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
