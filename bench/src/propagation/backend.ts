import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { EndpointName, SocketAddress } from './places.ts';

export type NamedEndpoint = AsyncDisposable & { readonly name: EndpointName; readonly address: SocketAddress };

/** Says its name to whoever connects, and nothing else. */
export async function startNamedEndpoint(name: EndpointName, { host, port }: SocketAddress): Promise<NamedEndpoint> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(name);
  });
  server.listen({ host, port, backlog: 511 });
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    name,
    address: { host, port: address.port },
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}
