// What is decided anew of a client whose handshake is under way when its Service changes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import { connect, type SecureVersion, type TLSSocket } from 'node:tls';
import { echoServer, eventually, makeCertificate } from '@weir/testkit';
import { ACTIVE } from '../../src/metering/counters.ts';
import { AUTHORITY, TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const CLIENTS = makeCertificate({ name: 'Clients', isAuthority: true });

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: what changes while a client is met holds for it: another client CA, TLS that ends no more, a renewed certificate`, async () => {
    await using backend = await echoServer();
    const service = webService([endpointOf(backend)], terminatingTls());
    const renewed = makeCertificate({ name: 'web.example', names: ['web.example'], issuer: AUTHORITY });
    for (const [then, outcome] of [
      [webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS })), 'tls-handshake-failed'],
      [webService([endpointOf(backend)]), 'no-listener'],
      [webService([endpointOf(backend)], terminatingTls({ certificate: renewed })), undefined],
    ] as const) {
      using worker = await startWorkerInTest(service);
      const accepted = backend.acceptedConnections;
      const meeting = await meetingAt(worker, version);
      worker.serve(then);
      meeting.goOn();
      if (outcome === undefined) {
        meeting.socket.write('hello');
        const [echoed] = (await once(meeting.socket, 'data')) as [Buffer];
        assert.equal(echoed.toString(), 'hello');
      } else {
        await eventually(() => assert.deepEqual(worker.outcomes(), { [outcome]: 1 }));
        assert.equal(backend.acceptedConnections, accepted, 'no endpoint hears of it');
      }
      meeting.socket.destroy();
      await eventually(() => assert.equal(worker.row[ACTIVE], 0));
    }
  });
}

/** A client that has said hello and was answered; the rest of its handshake is held back until `goOn`. */
async function meetingAt(
  { host, port }: WorkerInTest,
  version: SecureVersion,
): Promise<{ socket: TLSSocket; goOn(): void }> {
  const [near, far] = duplexPair();
  const wire = connectPlain({ host, port });
  const held: Buffer[] = [];
  let isHeld = false;
  const [answered, replied] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  far.on('data', (bytes: Buffer) => {
    if (!isHeld) wire.write(bytes);
    else {
      held.push(bytes);
      replied.resolve();
    }
  });
  wire.on('data', (bytes: Buffer) => {
    isHeld = true;
    far.write(bytes);
    answered.resolve();
  });
  wire.on('error', () => {}); // It is the outcome that is looked at.
  const socket = connect({ socket: near, ...TRUSTING_CLIENT, minVersion: version, maxVersion: version });
  socket.on('error', () => {});
  socket.on('close', () => wire.destroy());
  await Promise.all([answered.promise, replied.promise]);
  return {
    socket,
    goOn() {
      isHeld = false;
      wire.removeAllListeners('data');
      wire.on('data', (bytes: Buffer) => void far.write(bytes));
      for (const bytes of held) wire.write(bytes);
    },
  };
}
