// Tests changes of a Service while the TLS handshake of a client is under way.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { duplexPair } from 'node:stream';
import { connect, type SecureVersion, type TLSSocket } from 'node:tls';
import { echoServer, eventually, makeCertificate } from '@weir/testkit';
import { ACTIVE } from '../../src/metering/counters.ts';
import { AUTHORITY, TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { testTls } from '../fixtures/tls-tests.ts';
import type { WorkerInTest } from '../fixtures/worker-in-test.ts';

const CLIENTS = makeCertificate({ name: 'Clients', isAuthority: true });

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  testTls(
    `${version}: checks the client CA, TLS termination and certificate again after the handshake`,
    async (startWorkerInTest) => {
      await using backend = await echoServer();
      const service = webService([endpointOf(backend)], terminatingTls());
      const renewed = makeCertificate({ name: 'web.example', names: ['web.example'], issuer: AUTHORITY });
      for (const [changed, outcome] of [
        [webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS })), 'tls-handshake-failed'],
        [webService([endpointOf(backend)]), 'no-listener'],
        [webService([endpointOf(backend)], terminatingTls({ certificate: renewed })), undefined],
      ] as const) {
        using worker = await startWorkerInTest(service);
        const accepted = backend.acceptedConnections;
        const handshake = await pausedHandshake(worker, version);
        worker.serve(changed);
        handshake.resume();
        if (outcome === undefined) {
          handshake.socket.write('hello');
          const [echoed] = (await once(handshake.socket, 'data')) as [Buffer];
          assert.equal(echoed.toString(), 'hello');
        } else {
          await eventually(() => assert.deepEqual(worker.outcomes(), { [outcome]: 1 }));
          assert.equal(backend.acceptedConnections, accepted, 'no endpoint is connected');
        }
        handshake.socket.destroy();
        await eventually(() => assert.equal(worker.row[ACTIVE], 0));
      }
    },
  );
}

/**
 * Returns a client whose ClientHello was answered. Holds back the client's next handshake messages until `resume` is
 * called.
 */
async function pausedHandshake(
  { host, port }: WorkerInTest,
  version: SecureVersion,
): Promise<{ socket: TLSSocket; resume(): void }> {
  const [clientSide, relaySide] = duplexPair();
  const connection = connectPlain({ host, port });
  const heldBack: Buffer[] = [];
  let isPaused = false;
  const [answered, replied] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  relaySide.on('data', (bytes: Buffer) => {
    if (!isPaused) connection.write(bytes);
    else {
      heldBack.push(bytes);
      replied.resolve();
    }
  });
  connection.on('data', (bytes: Buffer) => {
    isPaused = true;
    relaySide.write(bytes);
    answered.resolve();
  });
  connection.on('error', () => {}); // Ignored, because the test checks the worker's outcomes.
  const socket = connect({ socket: clientSide, ...TRUSTING_CLIENT, minVersion: version, maxVersion: version });
  socket.on('error', () => {});
  socket.on('close', () => connection.destroy());
  await Promise.all([answered.promise, replied.promise]);
  return {
    socket,
    resume() {
      isPaused = false;
      connection.removeAllListeners('data');
      connection.on('data', (bytes: Buffer) => void relaySide.write(bytes));
      for (const bytes of heldBack) connection.write(bytes);
    },
  };
}
