import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { RequestOptions } from 'node:https';
import { errorMessage, isLoopback, UsageError } from '@weir/runtime';

// How a request comes to a console.
export interface ConsoleRequest {
  readonly method: string;
  /** With the query: `/api/v1/services?tenant=shop`. */
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
  /** The URL below which it is, for messages. */
  readonly baseUrl: string;
  readonly hints: ErrorHints;
  send(question: ConsoleRequest): Promise<ConsoleResponse>;
}

/** What to do. */
export interface ErrorHints {
  /** Nobody answers there. */
  readonly unreachable: string;
  /** Something else does. */
  readonly notAConsole: string;
  /** Nothing says that the certificate there may be believed. */
  readonly untrusted: string;
}

export interface SendOptions extends RequestOptions {
  readonly url: URL;
  readonly request: ConsoleRequest;
}

/** Rejects when nobody answers, or the signal aborts; any answer is one. */
export async function sendRequest({
  url,
  request: question,
  headers,
  ...options
}: SendOptions): Promise<ConsoleResponse> {
  const { method, body, signal, isStream } = question;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { request } = url.protocol === 'https:' ? await import('node:https') : http;
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const sending = request(url, {
    ...options,
    method,
    signal,
    headers: {
      ...headers,
      accept: isStream ? 'text/event-stream' : 'application/json',
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    },
  });
  sending.once('response', resolve);
  sending.once('error', (error) => reject(signal.aborted ? signal.reason : error));
  sending.end(text);
  const response = await promise;
  return { status: response.statusCode ?? 0, body: response };
}

export interface DirectTransportOptions {
  readonly server: string;
  readonly token?: string | undefined;
  /** Path of a PEM file: the authority of the server's certificate. */
  readonly caFile?: string | undefined;
  /** The token may go over http to another machine. */
  readonly allowPlainHttp?: boolean | undefined;
}

const DIRECT_HINTS = {
  unreachable: 'start one with `weir standalone -f DIR`, or say where it is with --server URL or WEIR_SERVER',
  notAConsole: 'check --server or WEIR_SERVER',
  untrusted: 'name the authority of its certificate by --ca-file',
};

/** To a console by its URL. */
export function directTransport({ server, token, caFile, allowPlainHttp = false }: DirectTransportOptions): Transport {
  const base = parseServerUrl(server);
  const ca = caFile === undefined ? undefined : readOptionFile('--ca-file', caFile);
  if (ca !== undefined && base.protocol === 'http:') {
    throw new UsageError(`--ca-file is for https, and --server (or WEIR_SERVER) is ${base.href}`);
  }
  if (token !== undefined && !allowPlainHttp && base.protocol === 'http:' && !isLoopback(hostWithoutBrackets(base))) {
    throw new UsageError(
      `--server (or WEIR_SERVER) is ${base.href}, and the token would go there in the clear; use https, reach the console through loopback (kubectl port-forward), or say --plain-http`,
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
    throw new UsageError(`${option} is ${path}, which cannot be read (${errorMessage(error)})`);
  }
}

/** Without the brackets of an IPv6 address. */
function hostWithoutBrackets({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function parseServerUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && url.username + url.password !== '') {
    throw new UsageError(
      '--server (or WEIR_SERVER) holds a user or password, which a console does not take; leave them out',
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--server (or WEIR_SERVER) is "${text}"; use a URL such as http://127.0.0.1:8686`);
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

const AGGREGATED_API_PATH = '/apis/console.weir.dev/v1';

/** To the console of a cluster, through its API server, signed in as the kubeconfig says; undefined: as kubectl finds it. */
export async function clusterTransport(kubeconfig: string | undefined): Promise<Transport> {
  // Loaded here: whoever asks a console by its URL needs none of it, and begins at once.
  const { loadKubeConfig } = await import('@weir/controller');
  const config = loadKubeConfig(kubeconfig, '--kubeconfig or KUBECONFIG');
  const server = config.getCurrentCluster()?.server ?? '';
  const base = server.replace(/\/$/, '');
  return {
    baseUrl: `${base}${AGGREGATED_API_PATH}/`,
    hints: {
      unreachable: 'is the cluster of the kubeconfig there? or say where a console is with --server URL or WEIR_SERVER',
      notAConsole:
        'does this cluster have Weir, with its console as an API (console.aggregated of the chart; kubectl get apiservice v1.console.weir.dev)? or say where a console is with --server URL or WEIR_SERVER',
      untrusted: 'the kubeconfig has to name the authority of its certificate (certificate-authority of the cluster)',
    },
    async send(request) {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options as never);
      const url = new URL(`${base}${request.path.replace('/api/v1', AGGREGATED_API_PATH)}`);
      // An API server ends after a minute what does not say that it lasts.
      if (request.isStream) url.searchParams.set('watch', 'true');
      return sendRequest({ ...options, url, request });
    },
  };
}
