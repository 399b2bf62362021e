import { createServer, type RequestListener, type Server } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { CertificateReloader } from '@weir/runtime';
import type { FrontProxy } from './aggregation/front-proxy.ts';

/** A request is short, and so is the time to send it; what is open counts also before anybody has signed in. */
const SERVER_TIMEOUTS = { requestTimeout: 30_000, keepAliveTimeout: 72_000, connectionsCheckingInterval: 5_000 };
const MAX_CONNECTIONS = 1_024;
const TLS_HANDSHAKE_TIMEOUT_MS = 10_000;

export interface TlsOptions {
  readonly keyPair: CertificateReloader;
  /** Whose certificates are asked for, and passed on as good. */
  readonly frontProxy: FrontProxy | undefined;
  readonly openSockets: OpenSockets;
}

/** Of HTTP, or HTTPS. */
export function createConsoleServer(encryption: TlsOptions | undefined, listener: RequestListener): Server {
  const server =
    encryption === undefined ? createServer(SERVER_TIMEOUTS, listener) : createTlsServer(encryption, listener);
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

/** Shows the certificate as it is now, also after it was renewed under our feet. */
function createTlsServer({ keyPair, frontProxy, openSockets }: TlsOptions, listener: RequestListener): Server {
  // Whoever has no certificate, or another's, is anybody: a token may still say who it is.
  const clients = frontProxy === undefined ? {} : { requestCert: true, rejectUnauthorized: false };
  const server = https.createServer(
    { ...SERVER_TIMEOUTS, ...clients, handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS },
    listener,
  );
  const taking: Pick<https.Server, 'setSecureContext'> = {
    setSecureContext: (options) =>
      // Without an authority of the front proxy it is none: the well-known ones would count instead.
      server.setSecureContext({ ...options, ca: frontProxy?.settings === undefined ? [] : [frontProxy.settings.ca] }),
  };
  keyPair.applyTo(taking);
  frontProxy?.onChange(() => {
    keyPair.applyTo(taking);
    // They were judged without the new authorities.
    server.closeIdleConnections();
  });
  // Before the server's own listener, which begins the handshake.
  server.prependListener('connection', (socket) => {
    openSockets.add(socket);
    keyPair.reloadIfChanged(taking);
  });
  // What it has beside those of HTTP is of no concern to the routes.
  return server as unknown as Server;
}

/**
 * The sockets under TLS. A server ends those that it knows when it closes; one whose handshake is not over it does not know yet,
 * and waits for it.
 */
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

  /** Ends them, and each that is added afterwards. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
