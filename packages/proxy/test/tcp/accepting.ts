import { EventEmitter, once } from 'node:events';
import type { AcceptedStream, TcpListener, Transport } from '../../src/tcp/transport.ts';
import { loopbackAddress } from '../fixtures/loopback.ts';
import { Recorder } from './recorder.ts';

export const PORT = 7_000;

export interface Accepted {
  readonly stream: AcceptedStream;
  readonly events: Recorder;
}

export interface Accepting extends Disposable {
  readonly host: string;
  readonly port: number;
  readonly listener: TcpListener;
  /** The next connection that arrives; reads from the start unless it is told not to. */
  next(options?: { readonly reads?: boolean }): Promise<Accepted>;
  resetAll(): void;
}

/** A listener of the transport under test, on an address of its own. */
export async function accepting(transport: Transport, host: string = loopbackAddress()): Promise<Accepting> {
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
        const events = new Recorder();
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
      const [accepted] = (await once(arrivals, 'arrival')) as [Accepted];
      if (reads) accepted.stream.readStart();
      return accepted;
    },
    [Symbol.dispose]() {
      listener.close();
      resetAll();
    },
  };
}
