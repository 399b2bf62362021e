import type { createServer } from 'node:http';
import type { createServer as createSecureServer, Server } from 'node:https';

/**
 * As of `node:http`. An `import` of it reads everything that it exports, and one of that (`WebSocket`) brings an HTTP client and HTTP/2:
 * 25 ms of CPU time at each start, and 7 MB.
 */
export const createHttpServer: typeof createServer = process.getBuiltinModule('node:http').createServer;

/** As of `node:https`, which is loaded by the first call: most processes never need it. */
export function createHttpsServer(...args: Parameters<typeof createSecureServer>): Server {
  return process.getBuiltinModule('node:https').createServer(...args);
}
