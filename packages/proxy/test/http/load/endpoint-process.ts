// Runs one HTTP endpoint per Service named on the command line, which stops like a usual pod: SIGTERM closes its listeners and its idle
// connections, and it ends when the open requests have their answers. The first argument is the name of the generation. Prints the
// ports by Service as a line of JSON.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';

const [generation = '', ...services] = process.argv.slice(2);
process.setMaxListeners(0);
const ports: Record<string, number> = {};

for (const service of services) {
  // `api` is an endpoint of HTTP/2 without TLS.
  const server = service === 'api' ? createHttp2Server() : createServer();
  server.on('request', answerAs(service));
  server.on('session', (session: ServerHttp2Session) => process.once('SIGTERM', () => session.close()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ports[service] = (server.address() as AddressInfo).port;
  process.once('SIGTERM', () => server.close());
}
process.stdout.write(`${JSON.stringify(ports)}\n`);

/** Answers with the Service, the generation, the `x-id` of the request, and a digest of its body. */
function answerAs(service: string): RequestListener {
  return (request, response) => {
    const digest = createHash('sha256');
    request.on('data', (part: Buffer) => digest.update(part));
    request.on('end', () => {
      const body = `${service} ${generation} ${request.headers['x-id']} ${digest.digest('base64url')}`;
      response.writeHead(200, { 'content-length': body.length }).end(body);
    });
  };
}
