// Rights are asked for by the dozen, and the client library's own transport makes a new TLS connection for each. From it come kubeconfig
// and its many ways to sign in.
import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { ServerConnection } from '@weir/runtime';

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

export class ApiConnection {
  readonly #connection: ServerConnection;
  readonly #timeoutMs: number;

  constructor({ kubeconfig, timeoutMs }: ApiConnectionOptions) {
    this.#timeoutMs = timeoutMs;
    const { server = '', proxyUrl } = kubeconfig.getCurrentCluster() ?? {};
    this.#connection = new ServerConnection({
      server,
      isProxied: proxyUrl !== undefined,
      userAgent: 'weir-console',
      maxSockets: MOST_CONNECTIONS,
      async credentials() {
        const options: RequestOptions = {};
        await kubeconfig.applyToHTTPSOptions(options);
        return options;
      },
    });
  }

  /** Any answer resolves; none rejects. */
  async send(method: string, path: string, body?: object): Promise<ApiAnswer> {
    const response = await this.#connection.send({
      method,
      path,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    return { status: response.statusCode ?? 0, body: parsed(await textOf(response)) };
  }

  close(): void {
    this.#connection.close();
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
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
