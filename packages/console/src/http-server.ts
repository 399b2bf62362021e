import { createServer, type RequestListener, type Server } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { CertificateReloader } from '@weir/runtime';
import type { FrontProxy } from './aggregation/front-proxy.ts';

/** Timeouts of the server in milliseconds. They limit how long a client that has not signed in can occupy a connection. */
const SERVER_TIMEOUTS = { requestTimeout: 30_000, keepAliveTimeout: 72_000, connectionsCheckingInterval: 5_000 };
const MAX_CONNECTIONS = 1_024;
const TLS_HANDSHAKE_TIMEOUT_MS = 10_000;

export interface TlsOptions {
  readonly keyPair: CertificateReloader;
  /**
   * The front proxy whose certificate authorities the server trusts for client certificates. If undefined, the server requests no client
   * certificates.
   */
  readonly frontProxy: FrontProxy | undefined;
  readonly openSockets: OpenSockets;
}

/** Creates the HTTPS server, or the HTTP server if `encryption` is undefined. */
export function createConsoleServer(encryption: TlsOptions | undefined, listener: RequestListener): Server {
  const server =
    encryption === undefined ? createServer(SERVER_TIMEOUTS, listener) : createTlsServer(encryption, listener);
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

/** Creates an HTTPS server that reloads a renewed certificate before the next handshake. */
function createTlsServer({ keyPair, frontProxy, openSockets }: TlsOptions, listener: RequestListener): Server {
  // A client without a valid certificate is accepted, because it may authenticate with a token.
  const clientCertificates = frontProxy === undefined ? {} : { requestCert: true, rejectUnauthorized: false };
  const server = https.createServer(
    { ...SERVER_TIMEOUTS, ...clientCertificates, handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS },
    listener,
  );
  const tlsContext: Pick<https.Server, 'setSecureContext'> = {
    setSecureContext: (options) =>
      // Without `ca`, Node.js would accept client certificates of its built-in authorities.
      server.setSecureContext({ ...options, ca: frontProxy?.settings === undefined ? [] : [frontProxy.settings.ca] }),
  };
  keyPair.applyTo(tlsContext);
  frontProxy?.onChange(() => {
    keyPair.applyTo(tlsContext);
    // Clients must reconnect, because their certificates were verified with the old authorities.
    server.closeIdleConnections();
  });
  // This listener runs first, because the server's own listener begins the handshake and needs the renewed certificate.
  server.prependListener('connection', (socket) => {
    openSockets.add(socket);
    keyPair.reloadIfChanged(tlsContext);
  });
  // Fastify's types expect an `http.Server`. The routes use only methods that an `https.Server` has as well.
  return server as unknown as Server;
}

/** The open TCP sockets of a TLS server. `close` destroys them, because the server would otherwise wait for unfinished handshakes. */
export class OpenSockets {
  readonly #open = new Set<Socket>();
  #isClosed = false;

  add(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
  }

  /** Destroys all sockets, and every socket that is added later. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
