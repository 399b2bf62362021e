import type { createServer } from 'node:http';
import type { createServer as createSecureServer, Server } from 'node:https';

/**
 * `createServer` of `node:http`. Not imported, because an `import` of `node:http` evaluates all its exports. The export `WebSocket` loads
 * an HTTP client and HTTP/2. Loading them takes 25 ms of CPU time and 7 MB of memory at each start.
 */
export const createHttpServer: typeof createServer = process.getBuiltinModule('node:http').createServer;

/** `createServer` of `node:https`. The first call loads the module, because most processes never need it. */
export function createHttpsServer(...args: Parameters<typeof createSecureServer>): Server {
  return process.getBuiltinModule('node:https').createServer(...args);
}
