// A process with few descriptors. It accepts connections until no descriptor is left, tries to connect to an endpoint,
// resets all connections, and then greets new clients. Reports its progress on stdout. Arguments: the transport, and
// the address and port of the endpoint.

import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { netTransport } from '../../../src/transport/tcp/net-transport.ts';
import type { TcpStream, TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { loopbackAddress } from '../../fixtures/listen-address.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { PORT } from './test-listener.ts';

export type TransportName = 'epoll' | 'net';

if (process.argv[1] === import.meta.filename) run(process.argv.slice(2) as [TransportName, string, string]);

function run([name, address, port]: [TransportName, string, string]): void {
  const transport = { epoll: epollTransport, net: netTransport }[name];
  const host = loopbackAddress();
  const accepted: { readonly stream: TcpStream; readonly events: StreamRecorder }[] = [];
  let stage: 'filling' | 'full' | 'freed' = 'filling';
  const take = (stream: TcpStream): void => {
    if (stage === 'freed') {
      greet(stream);
      return;
    }
    const events = new StreamRecorder();
    stream.accept(events);
    accepted.push({ stream, events });
  };
  const full = async (code: string): Promise<void> => {
    if (stage !== 'filling') return;
    stage = 'full';
    print(`accept ${code}`);
    print(`connect ${await firstFailure(transport, { address, port: Number(port) })}`);
    for (const { stream } of accepted) stream.reset();
    await Promise.all(accepted.map(({ events }) => events.until(() => events.closed !== undefined)));
    stage = 'freed';
    print('freed');
  };
  transport.listen(
    { address: host, port: PORT, reusePort: false },
    {
      onListening: () => print(`listening ${host} ${PORT}`),
      onFailed: (code) => print(`failed ${code}`),
      onAcceptError: (code) => void full(code),
      onConnection: take,
    },
  );
}

/**
 * Sends a greeting and a FIN. Also reads from the stream: otherwise the transport would not notice that a client has
 * closed, and would keep the descriptor of the stream.
 */
function greet(stream: TcpStream): void {
  stream.accept(new StreamRecorder());
  stream.write(Buffer.from('again'));
  stream.readStart();
  stream.shutdown();
}

/** Connects until an attempt fails, then resets all streams. Returns the error code of the failed attempt. */
async function firstFailure(transport: TcpTransport, to: { address: string; port: number }): Promise<string> {
  const streams: TcpStream[] = [];
  try {
    for (;;) {
      const events = new StreamRecorder();
      streams.push(transport.connect(to, events));
      await events.until(() => events.isConnected || events.closed !== undefined);
      if (events.closed !== undefined) return events.closed.code ?? 'nothing';
    }
  } finally {
    for (const stream of streams) stream.reset();
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
