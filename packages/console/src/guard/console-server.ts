import { createServer, type RequestListener, type Server } from 'node:http';
import https from 'node:https';
import type { KeyPair } from '@weir/runtime';
import type { FrontProxy } from '../aggregation/front-proxy.ts';
import type { OpenSockets } from './open-sockets.ts';

/** A request is short, and so is the time to send it; what is open counts also before anybody has signed in. */
const LIMITS = { requestTimeout: 30_000, keepAliveTimeout: 72_000, connectionsCheckingInterval: 5_000 };
const MOST_CONNECTIONS = 1_024;
const HANDSHAKE_MS = 10_000;

export interface Encryption {
  readonly pair: KeyPair;
  /** Whose certificates are asked for, and passed on as good. */
  readonly frontProxy: FrontProxy | undefined;
  readonly sockets: OpenSockets;
}

/** Of HTTP, or HTTPS. */
export function consoleServer(encryption: Encryption | undefined, listener: RequestListener): Server {
  const server = encryption === undefined ? createServer(LIMITS, listener) : secureServer(encryption, listener);
  server.maxConnections = MOST_CONNECTIONS;
  return server;
}

/** Shows the certificate as it is now, also after it was renewed under our feet. */
function secureServer({ pair, frontProxy, sockets }: Encryption, listener: RequestListener): Server {
  // Whoever has no certificate, or another's, is anybody: a token may still say who it is.
  const clients = frontProxy === undefined ? {} : { requestCert: true, rejectUnauthorized: false };
  const server = https.createServer({ ...LIMITS, ...clients, handshakeTimeout: HANDSHAKE_MS }, listener);
  const taking: Pick<https.Server, 'setSecureContext'> = {
    setSecureContext: (options) =>
      // Without an authority of the front proxy it is none: the well-known ones would count instead.
      server.setSecureContext({ ...options, ca: frontProxy?.settings === undefined ? [] : [frontProxy.settings.ca] }),
  };
  pair.equip(taking);
  frontProxy?.onChange(() => {
    pair.equip(taking);
    // They were judged without the new authorities.
    server.closeIdleConnections();
  });
  // Before the server's own listener, which begins the handshake.
  server.prependListener('connection', (socket) => {
    sockets.add(socket);
    pair.renew(taking);
  });
  // What it has beside those of HTTP is of no concern to the routes.
  return server as unknown as Server;
}
