// A worker that echoes TCP on a free port and listens for UDP on the same port, until it is terminated. Posts the port.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { freePort } from '@weir/testkit';
import { openTransports } from '../../src/transport/choose-transport.ts';

if (!isMainThread) {
  const { tcp, udp } = await openTransports({
    transport: 'syscalls',
    ...(workerData as { descriptors: SharedArrayBuffer }),
  });
  const port = await freePort();
  const echo = {
    onConnect: () => undefined,
    onData: (stream: { write(bytes: Uint8Array): number }, bytes: Uint8Array) => void stream.write(bytes),
    onEnd: () => undefined,
    onDrain: () => undefined,
    onClose: () => undefined,
    onThrow: () => undefined,
  };
  const datagrams = {
    onListening: () => parentPort?.postMessage(port),
    onFailed(code: string) {
      throw new Error(code);
    },
    onMessage: () => undefined,
    onThrow: () => undefined,
  };
  tcp.listen(
    { address: '127.0.0.1', port, reusePort: true },
    {
      onListening: () => udp.bind({ address: '127.0.0.1', port, reusePort: true }, datagrams),
      onFailed: (code) => {
        throw new Error(code);
      },
      onConnection(stream) {
        stream.accept(echo);
        stream.readStart();
      },
      onAcceptError: () => undefined,
    },
  );
}
