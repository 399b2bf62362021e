// A process with few descriptors: takes connections until there are none left, tries to connect then, lets go of all, and
// greets whoever comes then. Says on stdout how far it is. Arguments: transport, and where an endpoint listens.

import { netTransport } from '../../../src/transport/tcp/net-transport.ts';
import { rawTransport } from '../../../src/transport/tcp/raw-transport.ts';
import type { TcpStream, TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { loopbackAddress } from '../../fixtures/listen-address.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { PORT } from './test-listener.ts';

export type TransportName = 'bare' | 'net';

if (process.argv[1] === import.meta.filename) run(process.argv.slice(2) as [TransportName, string, string]);

function run([name, address, port]: [TransportName, string, string]): void {
  const transport = name === 'bare' ? rawTransport : netTransport;
  const host = loopbackAddress();
  const held: { readonly stream: TcpStream; readonly events: StreamRecorder }[] = [];
  let stage: 'filling' | 'full' | 'freed' = 'filling';
  const take = (stream: TcpStream): void => {
    if (stage === 'freed') {
      greet(stream);
      return;
    }
    const events = new StreamRecorder();
    stream.accept(events);
    held.push({ stream, events });
  };
  const full = async (code: string): Promise<void> => {
    if (stage !== 'filling') return;
    stage = 'full';
    say(`accept ${code}`);
    say(`connect ${await firstFailure(transport, { address, port: Number(port) })}`);
    for (const { stream } of held) stream.reset();
    await Promise.all(held.map(({ events }) => events.until(() => events.closed !== undefined)));
    stage = 'freed';
    say('freed');
  };
  transport.listen(
    { address: host, port: PORT, reusePort: false },
    {
      onListening: () => say(`listening ${host} ${PORT}`),
      onFailed: (code) => say(`failed ${code}`),
      onAcceptError: (code) => void full(code),
      onConnection: take,
    },
  );
}

/** Read from, since those who waited for their turn when there were none would hold theirs for ever. */
function greet(stream: TcpStream): void {
  stream.accept(new StreamRecorder());
  stream.write(Buffer.from('again'));
  stream.readStart();
  stream.shutdown();
}

/** Connects until it cannot; all are given up then. */
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

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
