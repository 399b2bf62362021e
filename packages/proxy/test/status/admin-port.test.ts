// Tests an admin port that is released while it is being opened, or requested while it is being closed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AdminServer, createLogger, ManualClock, WeirError } from '@weir/runtime';
import { AdminPort } from '../../src/status/admin-port.ts';

const AT = { host: '127.0.0.1', port: 8_687 };

/** A server whose port opens or closes only when the test completes the pending call. */
class SlowServer implements AdminServer {
  readonly name = 'admin';
  readonly waiting: { readonly kind: 'open' | 'close'; done(error?: Error): void }[] = [];

  start(): Promise<void> {
    return this.#pendingCall('open');
  }

  close(): Promise<void> {
    return this.#pendingCall('close');
  }

  address(): typeof AT {
    return AT;
  }

  /** Completes the oldest pending call. */
  async next(kind: 'open' | 'close', error?: Error): Promise<void> {
    const call = this.waiting.shift();
    assert.equal(call?.kind, kind);
    call?.done(error);
    await settled();
  }

  #pendingCall(kind: 'open' | 'close'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ kind, done: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  }
}

const inUse = (): Error =>
  new WeirError('LISTEN_FAILED', 'taken', { cause: Object.assign(new Error('in use'), { code: 'EADDRINUSE' }) });

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function portOf(isOtherProxyServing: () => boolean = () => false): {
  port: AdminPort;
  server: SlowServer;
  clock: ManualClock;
  lines: string[];
} {
  const [server, clock, lines] = [new SlowServer(), new ManualClock(), [] as string[]];
  const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  return {
    port: new AdminPort({ at: AT, server: () => server, isOtherProxyServing, clock, log }),
    server,
    clock,
    lines,
  };
}

async function opened(): Promise<ReturnType<typeof portOf>> {
  const all = portOf();
  const starting = all.port.start();
  await all.server.next('open');
  await starting;
  assert.deepEqual(all.port.address, AT);
  return all;
}

test('reopens a port that is wanted back while it is being closed', async () => {
  const { port, server } = await opened();
  port.release();
  assert.equal(server.waiting.length, 1, 'closing begins at once');
  assert.equal(port.address, undefined);
  port.acquire();
  await server.next('close');
  await server.next('open');
  assert.deepEqual(port.address, AT);
});

test('closes a port that is released while it is being opened', async () => {
  const { port, server } = await opened();
  port.release();
  await server.next('close');
  port.acquire();
  port.release();
  await server.next('open');
  await server.next('close');
  assert.equal(port.address, undefined);
  assert.deepEqual(server.waiting, []);
});

test('does not retry a released port, and waits on close for a pending call', async () => {
  const { port, server, clock } = portOf();
  const starting = port.start();
  await server.next('open', inUse());
  await starting;
  assert.equal(port.address, undefined);
  port.release();
  await clock.advance(10_000);
  assert.deepEqual(server.waiting, []);
  port.acquire();
  let isClosed = false;
  const closing = port.close().then(() => {
    isClosed = true;
  });
  await server.next('open');
  assert.equal(isClosed, false);
  await server.next('close');
  await closing;
  port.acquire();
  assert.deepEqual(server.waiting, []);
});

test('warns once if another program has the port, and not if another proxy has it', async () => {
  let isOtherProxyServing = true;
  const { port, server, clock, lines } = portOf(() => isOtherProxyServing);
  const starting = port.start();
  await server.next('open', inUse());
  await starting;
  const refusedFor = async (tries: number): Promise<void> => {
    for (let each = 0; each < tries; each += 1) {
      await clock.advance(250);
      await server.next('open', inUse());
    }
  };
  await refusedFor(20);
  assert.equal(port.warning, undefined);
  isOtherProxyServing = false;
  await refusedFor(5);
  assert.equal(port.warning, undefined);
  await refusedFor(20);
  assert.equal(port.warning, 'taken');
  await clock.advance(250);
  await server.next('open');
  assert.equal(port.warning, undefined);
  const logged = lines.map((line) => JSON.parse(line) as { level: string; msg: string });
  assert.deepEqual(
    logged.map(({ level, msg }) => `${level}: ${msg}`),
    [
      'info: waiting for the admin port',
      'warn: failed to open the admin port; clients are served, but probes and metrics are not answered',
      'info: opened the admin port',
    ],
  );
});
