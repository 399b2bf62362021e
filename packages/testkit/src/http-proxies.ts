import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { listenTestServer } from './sockets/servers.ts';

export type ProxiedRequest = {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWatch: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

export type ProxiedResponse = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
};

/**
 * Decides what happens to a request. `forward` sends the request to the real server. `disconnect` closes the client's
 * connection without a response. A `ProxiedResponse` is sent to the client. The client waits until the promise
 * resolves.
 */
export type Interceptor = (request: ProxiedRequest) => Promise<ProxiedResponse | 'forward' | 'disconnect'>;

export type ApiServerProxy = AsyncDisposable & {
  /** The http:// URL of this proxy, for clients that authenticate with a token. */
  readonly server: string;
  /** All received requests, in order, including intercepted requests. */
  readonly requests: readonly ProxiedRequest[];
  /** Replaces the interceptor for later requests. The default interceptor forwards every request. */
  intercept(interceptor: Interceptor): void;
  /** Sends the request to the real server, and returns the response. */
  forward(request: ProxiedRequest): Promise<ProxiedResponse>;
  /** Ends every open watch. If `lastEvent` is given, sends it as the last event of each watch. */
  endWatches(lastEvent?: object): void;
  /** Sends no more events to the open watches, but does not close them. */
  freezeWatches(): void;
  /** Closes all connections of clients. This also ends their requests to the real server. */
  closeConnections(): void;
  close(): Promise<void>;
};

/** Starts a proxy in front of a real API server. The proxy can delay, refuse or drop requests, as a test demands. */
export async function startApiServerProxy(to: {
  readonly server: string;
  readonly ca: string;
}): Promise<ApiServerProxy> {
  const agent = new https.Agent({ keepAlive: true, ca: to.ca });
  const requests: ProxiedRequest[] = [];
  const watches = new Map<ServerResponse, IncomingMessage>();
  let interceptor: Interceptor = async () => 'forward';

  const send = async ({ method, path, query, headers, body }: ProxiedRequest): Promise<IncomingMessage> => {
    const { host: _, connection: __, ...passed } = headers;
    const search = query.size === 0 ? '' : `?${query}`;
    const upstream = https.request(`${to.server}${path}${search}`, { method, agent, headers: passed });
    upstream.end(body);
    const [response] = (await once(upstream, 'response')) as [IncomingMessage];
    return response;
  };
  const forward = async (request: ProxiedRequest): Promise<ProxiedResponse> => {
    const response = await send(request);
    return {
      status: response.statusCode ?? 0,
      headers: endToEndHeaders(response.headers),
      body: await readText(response),
    };
  };
  const passThrough = async (request: ProxiedRequest, response: ServerResponse): Promise<void> => {
    const upstream = await send(request);
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    response.writeHead(upstream.statusCode ?? 502, endToEndHeaders(upstream.headers));
    response.flushHeaders();
    if (request.isWatch) {
      watches.set(response, upstream);
      response.on('close', () => watches.delete(response));
    }
    upstream.pipe(response);
  };
  const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(message.url ?? '/', 'http://proxy');
    const request: ProxiedRequest = {
      method: message.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      isWatch: url.searchParams.get('watch') === 'true',
      headers: message.headers,
      body: await readText(message),
    };
    requests.push(request);
    const decision = await interceptor(request);
    if (response.destroyed) return;
    if (decision === 'disconnect') response.destroy();
    else if (decision === 'forward') await passThrough(request, response);
    else
      response
        .writeHead(decision.status, { 'content-type': 'application/json', ...decision.headers })
        .end(decision.body);
  };
  // If the real server cannot be reached, closes the client's connection without a response.
  const server = createServer((message, response) => void answer(message, response).catch(() => response.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    agent.destroy();
    await server[Symbol.asyncDispose]();
  };
  return {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    intercept(replacement) {
      interceptor = replacement;
    },
    forward,
    endWatches(lastEvent) {
      for (const watch of watches.keys()) watch.end(lastEvent === undefined ? '' : `${JSON.stringify(lastEvent)}\n`);
    },
    freezeWatches() {
      for (const [watch, upstream] of watches) upstream.unpipe(watch);
    },
    closeConnections: () => server.closeAllConnections(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Returns the headers without those that describe the connection and the length of the body. Node sets these headers
 * again for the response to the client.
 */
function endToEndHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const framing = ['connection', 'transfer-encoding', 'content-length'];
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || framing.includes(name) ? [] : [[name, String(value)]],
    ),
  );
}

async function readText(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

export type ForwardProxy = AsyncDisposable & {
  readonly url: string;
  /** The targets of the CONNECT requests so far, as `HOST:PORT`, in order. */
  readonly connectTargets: readonly string[];
};

/** Starts an HTTP CONNECT proxy that accepts any target. */
export async function startForwardProxy(): Promise<ForwardProxy> {
  const connectTargets: string[] = [];
  const server = createServer();
  server.on('connect', ({ url = '' }, client) => {
    connectTargets.push(url);
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(url) ?? [];
    const upstream = connect(Number(port), host);
    upstream.once('connect', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    // If one socket fails, the other socket is destroyed too.
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
    client.once('close', () => upstream.destroy());
  });
  const { host, port, close } = await listenTestServer(server);
  return { url: `http://${host}:${port}`, connectTargets, [Symbol.asyncDispose]: close };
}
