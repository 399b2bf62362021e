import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';

/** A shared key instead of certificates: nothing here depends on who signs what. */
const PSK = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const;
const KEY = Buffer.alloc(16, 7);

export interface TlsEchoServer extends AsyncDisposable {
  readonly port: number;
}

/** Ends TLS, says its name to whoever comes, and then whatever it is told. */
export async function startTlsEchoServer(name: string): Promise<TlsEchoServer> {
  const sockets = new Set<TLSSocket>();
  const server = createServer({ ...PSK, pskCallback: () => KEY }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.write(name);
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

export interface TlsAddress {
  readonly host?: string;
  readonly port: number;
  readonly servername: string;
}

export interface TlsClient extends AsyncDisposable {
  /** The name of the server. */
  readonly greeting: string;
  /** What comes back. */
  echo(text: string): Promise<string>;
}

/** A connection to whoever answers to the name there. */
export async function connectTls({ host = '127.0.0.1', port, servername }: TlsAddress): Promise<TlsClient> {
  const pskCallback = (): { psk: Buffer; identity: string } => ({ psk: KEY, identity: 'test' });
  const at = { host, port, servername };
  const client = connect({ ...at, ...PSK, pskCallback, checkServerIdentity: () => undefined });
  const answer = async (): Promise<string> => String((await once(client, 'data'))[0]);
  const greeting = await answer();
  return {
    greeting,
    echo(text) {
      const echoed = answer();
      client.write(text);
      return echoed;
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      if (!client.closed) await once(client, 'close');
    },
  };
}

export async function greetingFrom(at: TlsAddress): Promise<string> {
  await using client = await connectTls(at);
  return client.greeting;
}
