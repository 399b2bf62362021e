import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { errorMessage, HttpClient, isProxyUrl, PROXY_URL_FORMAT, redactUrl, UsageError } from '@weir/runtime';
import { ApiError } from '../api/api-error.ts';

export interface ApiResponse {
  readonly status: number;
  /** Undefined if the response is not JSON. */
  readonly body: unknown;
}

export interface ApiClientOptions {
  readonly kubeconfig: KubeConfig;
  /** Time after which a request without a complete response fails. */
  readonly timeoutMs: number;
}

const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const MAX_CONNECTIONS = 32;

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  /** The body of the request, which is sent as JSON. */
  readonly body?: object;
  /** Default: `application/json`. */
  readonly contentType?: string;
}

/**
 * Sends requests to the API server with the credentials of a KubeConfig, and reuses connections. `@kubernetes/client-node` is too slow for
 * dozens of reviews, because it opens a TLS connection per request.
 */
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

  /** Resolves with the response, whatever its status is. Rejects if there is no complete response. */
  async send({ method, path, body, contentType = 'application/json' }: ApiRequest): Promise<ApiResponse> {
    const json = body && JSON.stringify(body);
    // Sets content-length, because Node.js does not set it for DELETE.
    const response = await this.#connection.send({
      method,
      path,
      headers:
        json === undefined ? {} : { 'content-type': contentType, 'content-length': String(Buffer.byteLength(json)) },
      body: json,
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
    if (text.length > MAX_RESPONSE_BYTES)
      throw new Error(`the response of the API server exceeds ${MAX_RESPONSE_BYTES} bytes`);
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

/** Returns the `message` of a Kubernetes Status, or undefined if the response has no message. */
export function statusMessageOf({ body }: ApiResponse): string | undefined {
  const message = (body as { readonly message?: unknown } | null | undefined)?.message;
  return typeof message === 'string' ? message : undefined;
}

/**
 * Returns the error for a review that failed because the API server is unreachable. `subject` is what cannot be checked, such as "your
 * token".
 */
export function reviewUnavailableError(subject: string, error: unknown): ApiError {
  const message = `the API server is unreachable, so the console cannot check ${subject} (${errorMessage(error)}); try again later`;
  return new ApiError('KubernetesAway', message, { cause: error });
}

/** Returns the error for a review that the API server refused. The usual cause is that the console lacks a right. */
export function reviewRefusedError(resource: string, response: ApiResponse): ApiError {
  const { status } = response;
  const message = statusMessageOf(response);
  const reason = message === undefined ? `HTTP ${status}` : `HTTP ${status}: ${message}`;
  const fix = status === 403 ? `grant the console the right to create ${resource}` : 'try again';
  return new ApiError('KubernetesAway', `the API server refused to check the request (${reason}); ${fix}`);
}

/**
 * Returns the kubeconfig that KUBECONFIG names, or else a kubeconfig for the cluster in which this process runs, or else undefined. Does
 * not use `~/.kube/config`, because the console must not write Suspensions to a cluster that the user did not choose.
 */
export function findKubeconfig(env: Readonly<Record<string, string | undefined>>): KubeConfig | undefined {
  const kubeconfig = new KubeConfig();
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST } = env;
  if (KUBECONFIG !== undefined && KUBECONFIG !== '') {
    try {
      kubeconfig.loadFromDefault();
    } catch (error) {
      const message = `KUBECONFIG is ${KUBECONFIG}, which cannot be read (${errorMessage(error)}); set it to a readable kubeconfig, or unset it`;
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
