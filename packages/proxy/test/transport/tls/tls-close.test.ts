// Node ends by a segmentation fault when a TLSSocket and the socket below it are closed in the wrong order while something is under
// way: so every end is tried in every state.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { eventually, type TestClient } from '@weir/testkit';
import type { TcpStream } from '../../../src/transport/tcp-transport.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startTestListener } from '../tcp/test-listener.ts';
import { tlsTransport } from './tls-transport.ts';

type Act = (stream: TcpStream, client: TestClient) => unknown;

const BEFORE: Readonly<Record<string, Act>> = {
  nothing: () => undefined,
  'a small write': (stream) => void stream.write(Buffer.from('small')),
  'a large write to a reader': (stream) => void stream.write(Buffer.alloc(5_000_000)),
  'a large write to nobody': (stream, client) => {
    client.pause();
    stream.write(Buffer.alloc(5_000_000));
  },
  'our end': (stream) => stream.shutdown(),
  'a large write and our end': (stream) => {
    stream.write(Buffer.alloc(5_000_000));
    stream.shutdown();
  },
  'what the client says': (_stream, client) => void client.send('said').catch(() => undefined),
  // When it is out: a socket of Node that is reset before leaks its descriptor.
  'the end of the client': (_stream, client) => client.end(),
  'a pause': (stream) => stream.readStop(),
};

const ENDS: Readonly<Record<string, Act>> = {
  'our reset': (stream) => stream.reset(),
  'a reset of the client': (_stream, client) => client.reset(),
  'both resets': (stream, client) => {
    client.reset();
    stream.reset();
  },
  'a cut of the client, and our reset': (stream, client) => {
    client.sendBareFin();
    stream.reset();
  },
  'the ends of both': (stream, client) => {
    stream.shutdown();
    stream.readStart();
    client.resume();
    void client.end();
  },
};

const LATER: Readonly<Record<string, (act: () => void) => void>> = {
  'at once': (act) => act(),
  'in the next tick': (act) => process.nextTick(act),
  'in the next turn': (act) => void setImmediate(act),
  'two turns later': (act) => void setImmediate(() => setImmediate(act)),
};

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: in whatever state a client is, its end is told once, and leaves no descriptor`, async () => {
    const world = tlsTransport(name, transport);
    using door = await startTestListener(world.transport);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    for (const [state, prepare] of Object.entries(BEFORE)) {
      for (const [end, act] of Object.entries(ENDS)) {
        for (const [when, later] of Object.entries(LATER)) {
          const arrival = door.next();
          const connecting = world.connect({ host: door.host, port: door.port });
          const { stream, events } = await arrival;
          await using client = await connecting;
          void events.until(() => events.hasEnded).then(() => stream.shutdown());
          await prepare(stream, client);
          later(() => act(stream, client));
          const late = setTimeout(() => assert.fail(`${end} ${when} after ${state}: not told`), 20_000);
          await events.until(() => events.closed !== undefined);
          clearTimeout(late);
          // Nothing of it may do anything any more.
          stream.write(Buffer.alloc(10));
          stream.readStart();
          stream.shutdown();
          stream.reset();
        }
      }
    }
    await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
  });
}
