import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, HttpClient, isProxyUrl, PROXY_URL_FORMAT, redactUrl, UsageError } from '@weir/runtime';
import { ApiError } from '../api/api-error.ts';

// Rights are asked for by the dozen, and the client library's own transport makes a new TLS connection for each. From it come kubeconfig
// and its many ways to sign in.
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

/** The API server did not say `what`. */
export function reviewUnavailableError(what: string, error: unknown): ApiError {
  const message = `the API server does not say ${what} (${errorMessage(error)}); try again once it answers`;
  return new ApiError('KubernetesAway', message, { cause: error });
}

/** The API server answers, but not the question: mostly a right of the console that is missing. */
export function reviewRefusedError(resource: string, { status, body }: ApiResponse): ApiError {
  const said = (body as { readonly message?: unknown } | undefined)?.message;
  const why = typeof said === 'string' ? `: ${said}` : '';
  const todo = status === 403 ? `; grant the console create of ${resource}` : '; try again';
  return new ApiError('KubernetesAway', `the API server does not check the request (HTTP ${status}${why})${todo}`);
}

/**
 * The API server that Suspensions go to: the file of KUBECONFIG, else the cluster that this process runs in, else none. Not
 * `~/.kube/config`: whose cluster that happens to be is no reason to write into it.
 */
export function findKubeconfig(env: Readonly<Record<string, string | undefined>>): KubeConfig | undefined {
  const kubeconfig = new KubeConfig();
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST } = env;
  if (KUBECONFIG !== undefined && KUBECONFIG !== '') {
    try {
      kubeconfig.loadFromDefault();
    } catch (error) {
      const message = `KUBECONFIG is ${KUBECONFIG}, which cannot be used (${errorMessage(error)}); name a readable kubeconfig, or unset it`;
      throw new UsageError(message, { cause: error });
    }
  } else if (KUBERNETES_SERVICE_HOST !== undefined) kubeconfig.loadFromCluster();
  else return undefined;
  const cluster = kubeconfig.getCurrentCluster();
  if (cluster === null) {
    throw new UsageError('the kubeconfig has no current context; choose one with kubectl config use-context');
  }
  if (cluster.proxyUrl !== undefined && !isProxyUrl(cluster.proxyUrl)) {
    throw new UsageError(
      `the proxy-url "${redactUrl(cluster.proxyUrl)}" of the kubeconfig cannot be used; use ${PROXY_URL_FORMAT}`,
    );
  }
  return kubeconfig;
}
