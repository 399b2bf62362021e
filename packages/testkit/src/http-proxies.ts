import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { listenTestServer } from './sockets/servers.ts';

export type ProxiedRequest = {
  readonly method: string;
  /** Without the query. */
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
 * What becomes of a request. `through`: it goes on to the real server; `cut`: its connection breaks off without an answer. Until the
 * promise resolves the client waits.
 */
export type Interceptor = (request: ProxiedRequest) => Promise<ProxiedResponse | 'through' | 'cut'>;

export type ApiServerProxy = AsyncDisposable & {
  /** Plain HTTP: whoever signs in by a token can come this way. */
  readonly server: string;
  /** All that came, in order, whatever became of them. */
  readonly requests: readonly ProxiedRequest[];
  /** Of the requests from here on, in place of what was said before; at first all go through. */
  intercept(behaviour: Interceptor): void;
  /** What the real server answers to it. */
  forward(request: ProxiedRequest): Promise<ProxiedResponse>;
  /** The last line of every open watch, which then ends. */
  endWatches(lastEvent?: object): void;
  /** Every open watch stays open, and tells nothing any more. */
  freezeWatches(): void;
  /** Breaks off every connection, in both directions. */
  closeConnections(): void;
  close(): Promise<void>;
};

/** In front of a real API server, one that lags, refuses, hangs and breaks off as the test says. */
export async function startApiServerProxy(to: {
  readonly server: string;
  readonly ca: string;
}): Promise<ApiServerProxy> {
  const agent = new https.Agent({ keepAlive: true, ca: to.ca });
  const requests: ProxiedRequest[] = [];
  const watches = new Map<ServerResponse, IncomingMessage>();
  let behave: Interceptor = async () => 'through';

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
    const verdict = await behave(request);
    if (response.destroyed) return;
    if (verdict === 'cut') response.destroy();
    else if (verdict === 'through') await passThrough(request, response);
    else
      response.writeHead(verdict.status, { 'content-type': 'application/json', ...verdict.headers }).end(verdict.body);
  };
  // Of a real server that is away the client sees that nobody answers.
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
    intercept(behaviour) {
      behave = behaviour;
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

/** Whoever passes the body on decides how it is framed. */
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
  /** Where its clients wanted to go, as `HOST:PORT`, in order. */
  readonly connectTargets: readonly string[];
};

/** A proxy that connects its clients to wherever they ask (HTTP CONNECT). */
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
    // The other side learns of it by its own end.
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
    client.once('close', () => upstream.destroy());
  });
  const { host, port, close } = await listenTestServer(server);
  return { url: `http://${host}:${port}`, connectTargets, [Symbol.asyncDispose]: close };
}
