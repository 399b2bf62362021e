import { once } from 'node:events';
import { createServer } from 'node:net';

/** Takes a port, as any other program would. */
export async function occupyPort(where: { readonly host: string; readonly port: number }): Promise<AsyncDisposable> {
  const server = createServer();
  server.listen(where);
  await once(server, 'listening');
  return server;
}
