// What is decided anew of a client whose handshake is under way when its Service changes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import { connect, type SecureVersion, type TLSSocket } from 'node:tls';
import { echoServer, eventually, makeCertificate } from '@weir/testkit';
import { ACTIVE } from '../../src/counters/columns.ts';
import { AUTHORITY, endingTls, TRUSTING } from '../fixtures/certificates.ts';
import { type LoneWorker, loneWorker } from '../fixtures/lone-worker.ts';
import { endpointOf, web } from '../fixtures/serving.ts';

const CLIENTS = makeCertificate({ name: 'Clients', isAuthority: true });

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: what changes while a client is met holds for it: another client CA, TLS that ends no more, a renewed certificate`, async () => {
    await using backend = await echoServer();
    const service = web([endpointOf(backend)], endingTls());
    const renewed = makeCertificate({ name: 'web.example', names: ['web.example'], issuer: AUTHORITY });
    for (const [then, outcome] of [
      [web([endpointOf(backend)], endingTls({ authority: CLIENTS })), 'tls-handshake-failed'],
      [web([endpointOf(backend)]), 'no-listener'],
      [web([endpointOf(backend)], endingTls({ certificate: renewed })), undefined],
    ] as const) {
      using worker = await loneWorker(service);
      const accepted = backend.accepted;
      const meeting = await meetingAt(worker, version);
      worker.serve(then);
      meeting.goOn();
      if (outcome === undefined) {
        meeting.socket.write('hello');
        const [echoed] = (await once(meeting.socket, 'data')) as [Buffer];
        assert.equal(echoed.toString(), 'hello');
      } else {
        await eventually(() => assert.deepEqual(worker.outcomes(), { [outcome]: 1 }));
        assert.equal(backend.accepted, accepted, 'no endpoint hears of it');
      }
      meeting.socket.destroy();
      await eventually(() => assert.equal(worker.row[ACTIVE], 0));
    }
  });
}

/** A client that has said hello and was answered; the rest of its handshake is held back until `goOn`. */
async function meetingAt(
  { host, port }: LoneWorker,
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
  const socket = connect({ socket: near, ...TRUSTING, minVersion: version, maxVersion: version });
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
