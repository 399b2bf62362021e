import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { errorMessage, isLoopback, UsageError } from '@weir/runtime/command-line';
import { http } from './node-http.ts';

// Transports send requests to the console: either directly to the console's URL, or through the API server of the console's cluster.
export interface ConsoleRequest {
  readonly method: string;
  /** Path and query, such as `/api/v1/services?tenant=shop`. */
  readonly path: string;
  readonly body?: unknown;
  readonly isStream: boolean;
  readonly signal: AbortSignal;
}

export interface ConsoleResponse {
  readonly status: number;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Transport {
  /** URL of the console, for messages. */
  readonly baseUrl: string;
  readonly hints: ErrorHints;
  send(request: ConsoleRequest): Promise<ConsoleResponse>;
}

/** Advice for the user, for each kind of failure. */
export interface ErrorHints {
  readonly unreachable: string;
  readonly notAConsole: string;
  /** Advice if the issuer of the server's certificate is not trusted. */
  readonly untrusted: string;
  /** Advice if the console does not know the user. */
  readonly signIn: string;
}

const DIRECT_HINTS: ErrorHints = {
  unreachable: 'start one with `weir standalone -f DIR`, or name its URL with --server URL or WEIR_SERVER',
  notAConsole: 'check --server or WEIR_SERVER',
  untrusted: 'use --ca-file with the CA that signed the certificate of the console',
  signIn: 'pass the token with --token-file FILE or WEIR_TOKEN',
};

const CLUSTER_HINTS: ErrorHints = {
  unreachable:
    'check that the cluster of the kubeconfig runs, or name the URL of a console with --server URL or WEIR_SERVER',
  notAConsole:
    'check that Weir serves its console as an API in this cluster (console.aggregated of the chart; kubectl get apiservice v1.console.weir.dev), or name the URL of a console with --server URL or WEIR_SERVER',
  untrusted:
    'set certificate-authority of the cluster in the kubeconfig to the CA that signed the certificate of the API server',
  signIn: 'check the user of the kubeconfig (kubectl auth whoami)',
};

interface SendOptions extends RequestOptions {
  readonly url: URL;
  readonly request: ConsoleRequest;
}

/** Resolves with the response, whatever its status is. Rejects if the connection fails or the signal is aborted. */
async function sendRequest({
  url,
  request: consoleRequest,
  headers,
  ...options
}: SendOptions): Promise<ConsoleResponse> {
  const { method, body, signal, isStream } = consoleRequest;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { request } = url.protocol === 'https:' ? await import('node:https') : http;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const clientRequest = request(url, {
    ...options,
    method,
    signal,
    headers: {
      ...headers,
      accept: isStream ? 'text/event-stream, application/x-ndjson' : 'application/json',
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    },
  });
  clientRequest.once('response', resolve);
  clientRequest.once('error', (error) => reject(signal.aborted ? signal.reason : error));
  clientRequest.end(text);
  const response = await promise;
  return { status: response.statusCode ?? 0, body: response };
}

export interface DirectTransportOptions {
  readonly server: string;
  /** Where the user named the server, for messages: `--server` (the default) or `WEIR_SERVER`. */
  readonly source?: string;
  readonly token?: string | undefined;
  /** Path of a PEM file with the CA of the server's certificate. */
  readonly caFile?: string | undefined;
  /** Whether the token may be sent over http to another machine. */
  readonly allowPlainHttp?: boolean | undefined;
}

const DEFAULT_SOURCE = '--server';

/** Creates a transport to the console at a URL. */
export function directTransport(options: DirectTransportOptions): Transport {
  const { source = DEFAULT_SOURCE, token, caFile, allowPlainHttp = false } = options;
  const base = parseServerUrl(options);
  const ca = caFile === undefined ? undefined : readOptionFile('--ca-file', caFile);
  if (ca !== undefined && base.protocol === 'http:') {
    throw new UsageError(`--ca-file needs an https URL, but ${source} is ${base.href}`);
  }
  if (token !== undefined && !allowPlainHttp && base.protocol === 'http:' && !isLoopback(hostWithoutBrackets(base))) {
    throw new UsageError(
      `${source} is ${base.href}, so the token would be sent unencrypted; use https, kubectl port-forward to a loopback address, or --plain-http`,
    );
  }
  return {
    baseUrl: base.href,
    hints: DIRECT_HINTS,
    send: (request) =>
      sendRequest({
        url: new URL(request.path.replace(/^\//, ''), base),
        request,
        agent: false,
        ...(ca === undefined ? {} : { ca }),
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      }),
  };
}

export function readOptionFile(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`failed to read ${option} ${path}: ${errorMessage(error)}`);
  }
}

function hostWithoutBrackets({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function parseServerUrl({ server: text, source = DEFAULT_SOURCE }: DirectTransportOptions): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && url.username + url.password !== '') {
    throw new UsageError(
      `${source} contains a user or password, which the console does not accept; remove them, and use --token-file or WEIR_TOKEN`,
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`invalid ${source} "${text}": expected a URL such as http://127.0.0.1:8686`);
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

const AGGREGATED_API_PATH = '/apis/console.weir.dev/v1';

/**
 * Creates a transport to the console of a cluster. Requests go through the cluster's API server, with the credentials of the kubeconfig. If
 * `kubeconfig` is undefined, uses the kubeconfig that kubectl would use.
 */
export async function clusterTransport(kubeconfig: string | undefined): Promise<Transport> {
  // Loaded on demand, because the Kubernetes client loads slowly, and a direct transport does not need the client.
  const { loadKubeConfig } = await import('@weir/controller');
  const config = loadKubeConfig(kubeconfig, '--kubeconfig or KUBECONFIG');
  const server = config.getCurrentCluster()?.server ?? '';
  const base = server.replace(/\/$/, '');
  return {
    baseUrl: `${base}${AGGREGATED_API_PATH}/`,
    hints: CLUSTER_HINTS,
    async send(request) {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options as never);
      const url = new URL(`${base}${request.path.replace('/api/v1', AGGREGATED_API_PATH)}`);
      // An API server ends a request after a minute, unless the request is a watch.
      if (request.isStream) url.searchParams.set('watch', 'true');
      return sendRequest({ ...options, url, request });
    },
  };
}
