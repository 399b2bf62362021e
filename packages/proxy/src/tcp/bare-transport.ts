import { requireRawTcpBinding } from './bare-binding.ts';
import { onConnected } from './bare-callbacks.ts';
import { RawTcpListenSocket } from './bare-listener.ts';
import { RawTcpStream } from './bare-stream.ts';
import type { SocketAddress, StreamEvents, TcpTransport } from './transport.ts';

const { newSocket, newConnectRequest } = requireRawTcpBinding();

/** TCP on the handles that `node:net` itself stands on: what it costs is what the kernel and libuv cost. */
export const rawTransport: TcpTransport = {
  listen: (at, events) => new RawTcpListenSocket(at, events),
  connect,
};

function connect({ address, port }: SocketAddress, events: StreamEvents): RawTcpStream {
  const handle = newSocket();
  const stream = new RawTcpStream(handle, 'unused');
  stream.connecting(events);
  const request = newConnectRequest();
  request.owner = stream;
  request.oncomplete = onConnected;
  const error = address.includes(':')
    ? handle.connect6(request, address, port)
    : handle.connect(request, address, port);
  if (error < 0) stream.fail(error);
  return stream;
}
