import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { BackendName, Place } from './places.ts';

export type Backend = AsyncDisposable & { readonly name: BackendName; readonly place: Place };

/** Says its name to whoever connects, and nothing else. */
export async function startBackend(name: BackendName, { host, port }: Place): Promise<Backend> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(name);
  });
  server.listen({ host, port, backlog: 511 });
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    name,
    place: { host, port: address.port },
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}
