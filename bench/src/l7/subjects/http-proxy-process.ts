// Program `http-proxy-process.ts BACKEND HTTP ROUTES HTTPS CERTIFICATE KEY`: relays from the ports HTTP, ROUTES and HTTPS to the port
// BACKEND, all at 127.0.0.1, with the package `http-proxy`. CERTIFICATE and KEY are PEM files of the port HTTPS. Writes the same fields
// as Weir, except traceparent.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import httpProxy from 'http-proxy';
import { ROUTES_BY_HOST } from '../routes.ts';

const [backend, httpPort, routesPort, httpsPort, certificateFile = '', keyFile = ''] = process.argv.slice(2);

const proxy = httpProxy.createProxyServer({
  target: { host: '127.0.0.1', port: Number(backend) },
  agent: new Agent({ keepAlive: true, maxFreeSockets: 256 }),
  xfwd: true,
  headers: { Via: '1.1 http-proxy' },
});
proxy.on('proxyReq', (request) => request.setHeader('X-Request-Id', randomUUID()));
proxy.on('proxyRes', (response) => {
  response.headers.via = '1.1 http-proxy';
});
proxy.on('error', (_error, _request, response) => {
  response.destroy();
});

const relay = (request: IncomingMessage, response: ServerResponse): void => proxy.web(request, response);
const relayByRoute = (request: IncomingMessage, response: ServerResponse): void => {
  const routes = ROUTES_BY_HOST.get(request.headers.host ?? '');
  if (routes?.some(({ pathPrefix }) => request.url?.startsWith(`${pathPrefix}/`))) relay(request, response);
  else response.writeHead(404).end();
};

await listen(createServer(relay), httpPort);
await listen(createServer(relayByRoute), routesPort);
await listen(createTlsServer({ cert: readFileSync(certificateFile), key: readFileSync(keyFile) }, relay), httpsPort);
console.log('ready');

async function listen(server: Server, port: string | undefined): Promise<void> {
  await once(server.listen({ host: '127.0.0.1', port: Number(port), backlog: 4096 }), 'listening');
}
