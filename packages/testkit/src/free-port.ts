import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * A TCP port that is free now, for programs that cannot choose one themselves. Another process may take it before it is used:
 * whoever starts something on it tries again with another.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const server = createServer().listen({ port: 0, host });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
