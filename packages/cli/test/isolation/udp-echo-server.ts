import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export interface UdpEchoServer extends AsyncDisposable {
  readonly port: number;
  /** The source `address:port` of each received datagram. Each flow of a proxy has a different source port. */
  readonly peers: ReadonlySet<string>;
}

export async function startUdpEchoServer(): Promise<UdpEchoServer> {
  const socket = createSocket('udp4');
  const peers = new Set<string>();
  socket.on('message', (bytes, { address, port }) => {
    peers.add(`${address}:${port}`);
    socket.send(bytes, port, address);
  });
  socket.bind({ address: '127.0.0.1', port: 0 });
  await once(socket, 'listening');
  return {
    port: socket.address().port,
    peers,
    [Symbol.asyncDispose]: () => new Promise<void>((done) => socket.close(() => done())),
  };
}
