import { requireBareBinding } from './bare-binding.ts';
import { onConnected } from './bare-callbacks.ts';
import { BareListener } from './bare-listener.ts';
import { BareStream } from './bare-stream.ts';
import type { SocketAddress, StreamEvents, Transport } from './transport.ts';

const { newSocket, newConnectRequest } = requireBareBinding();

/** TCP on the handles that `node:net` itself stands on: what it costs is what the kernel and libuv cost. */
export const bareTransport: Transport = {
  listen: (at, events) => new BareListener(at, events),
  connect,
};

function connect({ address, port }: SocketAddress, events: StreamEvents): BareStream {
  const handle = newSocket();
  const stream = new BareStream(handle, 'unused');
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
