// A worker that begins TLS handshakes in memory until it is terminated. Counts them in `workerData.handshakes`.
import { isMainThread, workerData } from 'node:worker_threads';
import { NativeMemory } from '../../../src/transport/syscalls/ffi.ts';
import { OpensslClient } from '../../../src/transport/syscalls/openssl-client.ts';
import { OpensslConnection } from '../../../src/transport/syscalls/openssl-connection.ts';
import { OPENSSL_TICKET_KEY_BYTES, OpensslContext } from '../../../src/transport/syscalls/openssl-context.ts';
import { shareTerminationGuard } from '../../../src/transport/termination-guard.ts';
import { SERVER } from '../../fixtures/certificates.ts';

export interface HandshakingWorkerData {
  /** An Int32. */
  readonly handshakes: SharedArrayBuffer;
  /** Undefined if the worker does not use the guard of the supervisor. */
  readonly guard: SharedArrayBuffer | undefined;
}

if (!isMainThread) {
  const { handshakes, guard } = workerData as HandshakingWorkerData;
  if (guard !== undefined) shareTerminationGuard(guard);
  const count = new Int32Array(handshakes);
  const alpn = Buffer.from('\x08http/1.1\x02h2');
  // A long list keeps OpenSSL in the callback.
  const offered = Buffer.from(`${'\x01x'.repeat(30_000)}\x02h2`);
  const memory = new NativeMemory(262_144);
  const context = new OpensslContext({
    chain: SERVER.chain,
    key: SERVER.key,
    cipherSuites: { tls13: 'TLS_AES_128_GCM_SHA256', tls12: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    ticketKeys: new Uint8Array(OPENSSL_TICKET_KEY_BYTES),
    sessionIdContext: 'test',
  });
  using client = new OpensslClient({ alpn: offered });
  client.handshake(new Uint8Array(0));
  const hello = client.takeOutput();
  for (;;) {
    Atomics.add(count, 0, 1);
    Atomics.notify(count, 0);
    const server = new OpensslConnection(context, { alpn, staple: undefined });
    memory.bytes.set(hello);
    server.receive(memory, hello.length);
    if (server.protocol !== 'h2') throw new Error(`ALPN: ${server.protocol}`);
    server.free();
  }
}
