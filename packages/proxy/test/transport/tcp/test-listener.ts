import { EventEmitter, once } from 'node:events';
import type { AcceptedStream, TcpListenSocket, TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { loopbackAddress } from '../../fixtures/listen-address.ts';
import { StreamRecorder } from './stream-recorder.ts';

export const PORT = 7_000;

export interface AcceptedConnection {
  readonly stream: AcceptedStream;
  readonly events: StreamRecorder;
}

export interface TestListener extends Disposable {
  readonly host: string;
  readonly port: number;
  readonly listener: TcpListenSocket;
  /** Waits for the next connection, and starts to read from it unless `reads` is false. */
  next(options?: { readonly reads?: boolean }): Promise<AcceptedConnection>;
  resetAll(): void;
}

/** Listens with the transport under test. The default host is a random loopback address. */
export async function startTestListener(
  transport: TcpTransport,
  host: string = loopbackAddress(),
): Promise<TestListener> {
  const arrivals = new EventEmitter();
  const waiting: AcceptedStream[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const listener = transport.listen(
    { address: host, port: PORT, reusePort: false },
    {
      onListening: resolve,
      onFailed: (code) => reject(new Error(code)),
      onAcceptError: (code) => reject(new Error(code)),
      onConnection(stream) {
        const events = new StreamRecorder();
        stream.accept(events);
        waiting.push(stream);
        arrivals.emit('arrival', { stream, events });
      },
    },
  );
  await promise;
  const resetAll = (): void => {
    for (const stream of waiting.splice(0)) stream.reset();
  };
  return {
    host,
    port: PORT,
    listener,
    resetAll,
    async next({ reads = true } = {}) {
      const [accepted] = (await once(arrivals, 'arrival')) as [AcceptedConnection];
      if (reads) accepted.stream.readStart();
      return accepted;
    },
    [Symbol.dispose]() {
      listener.close();
      resetAll();
    },
  };
}
