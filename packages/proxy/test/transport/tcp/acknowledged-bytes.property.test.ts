// The ledger of a Service equals what the kernels of its clients have received, however a connection ends.
//
// Linux ignores the acknowledgement number of a RST, and a client may delay its acknowledgement by 200 ms. So before an
// end by RST, a case waits until the worker counts as sent what the client's kernel has received.
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import fc from 'fast-check';
import { ACTIVE, SENT, UNACKNOWLEDGED } from '../../../src/metering/counters.ts';
import type { Outcome } from '../../../src/metering/outcome.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { endpointOf, webService } from '../../fixtures/services.ts';
import { cutOff } from '../../fixtures/suspensions.ts';
import { type KernelReceipt, receivedByKernel } from '../../fixtures/tcp-info.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';
import { PacedClient } from './paced-client.ts';

const CASES = 200;
const AT_ONCE = 20;
const MAX_BYTES = 3_000_000;
/** The maximum number of pieces in which an endpoint writes. */
const MAX_PIECES = 300;
/** More ticks than the default idle timeout. */
const IDLE_TICKS = 605;

/** The ends after which the client has received everything. */
const GRACEFUL_ENDS = ['FIN by the endpoint', 'FIN by the client', 'listener close'] as const;
const ABORTIVE_ENDS = ['RST by the client', 'RST by the endpoint', 'idle timeout', 'cut-off'] as const;
type GracefulEnd = (typeof GRACEFUL_ENDS)[number];
type AbortiveEnd = (typeof ABORTIVE_ENDS)[number];

interface Transfer {
  /** How many bytes the endpoint writes, or would write if the connection did not end before. */
  readonly bytes: number;
  readonly pieces: readonly number[];
  readonly readsBetweenPauses: readonly number[];
  /** The part of the bytes that the client reads before the end happens. */
  readonly endsAfter: number;
  readonly end: GracefulEnd | AbortiveEnd;
  /** Who half-closes the connection before an abortive end. The endpoint does so after the last byte. */
  readonly halfCloses: 'none' | 'client' | 'endpoint' | 'both';
}

const transferArbitrary: fc.Arbitrary<Transfer> = fc.record({
  bytes: fc.oneof(
    fc.integer({ min: 1, max: 2_000 }),
    // If the client reads nothing, the kernels of both sides can buffer that many bytes, so FIN follows them.
    { weight: 3, arbitrary: fc.integer({ min: 60_000, max: 240_000 }) },
    { weight: 4, arbitrary: fc.integer({ min: 1, max: MAX_BYTES }) },
  ),
  pieces: fc.array(fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 300_000 })), {
    minLength: 1,
    maxLength: 8,
  }),
  readsBetweenPauses: fc.array(fc.integer({ min: 1, max: 400_000 }), { minLength: 1, maxLength: 5 }),
  endsAfter: fc.oneof(fc.constantFrom(0, 0.01, 1), {
    weight: 2,
    arbitrary: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  end: fc.constantFrom(...GRACEFUL_ENDS, ...ABORTIVE_ENDS, ...ABORTIVE_ENDS),
  halfCloses: fc.constantFrom('none', 'client', 'endpoint', 'both'),
});

const source = randomBytes(MAX_BYTES);

test('counts as sent exactly what the clients’ kernels have received', async (t) => {
  const seed = randomInt(2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const transfers = fc.sample(transferArbitrary, { numRuns: CASES, seed });
  for (let start = 0; start < CASES; start += AT_ONCE) {
    const cases = transfers.slice(start, start + AT_ONCE).map(async (transfer, index) => {
      try {
        await runTransfer(transfer);
      } catch (cause) {
        throw new Error(`case ${start + index} of seed ${seed} failed: ${JSON.stringify(transfer)}`, { cause });
      }
    });
    // Waits for all cases, so that a failed case does not leave the others without an owner.
    for (const result of await Promise.allSettled(cases)) if (result.status === 'rejected') throw result.reason;
  }
});

async function runTransfer(transfer: Transfer): Promise<void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const { address: host, port } = server.address() as AddressInfo;
  using worker = await startWorkerInTest(webService([endpointOf({ host, port })]), { transport: epollTransport });
  const arrival = once(server, 'connection') as Promise<[Socket]>;
  const { readsBetweenPauses, bytes, end } = transfer;
  const client = new PacedClient({
    ...worker,
    host: worker.host,
    expected: source.subarray(0, bytes),
    readsBetweenPauses,
  });
  let endpoint: Socket | undefined;
  try {
    [endpoint] = await arrival;
    endpoint.on('error', () => undefined);
    const setup = { worker, client, endpoint, transfer };
    const outcome = isAbortive(end) ? await endAbortively(setup, end) : await endGracefully(setup, end);
    assert.equal(worker.row[ACTIVE], 0);
    assert.equal(worker.row[UNACKNOWLEDGED], 0);
    // A reset of the client may arrive after both sides have sent FIN and the client has acknowledged everything.
    const isComplete =
      end === 'RST by the client' && transfer.halfCloses === 'both' && worker.outcomes().completed === 1;
    assert.deepEqual(worker.outcomes(), { [isComplete ? 'completed' : outcome]: 1 });
    assert.deepEqual(worker.reported, []);
  } finally {
    endpoint?.destroy();
    client.socket.destroy();
    await closed(server);
  }
}

const OUTCOMES: Readonly<Record<AbortiveEnd, Outcome>> = {
  'RST by the client': 'reset-by-client',
  'RST by the endpoint': 'reset-by-endpoint',
  'idle timeout': 'idle-timeout',
  'cut-off': 'cut-off',
};

interface Setup {
  readonly worker: WorkerInTest;
  readonly client: PacedClient;
  readonly endpoint: Socket;
  readonly transfer: Transfer;
}

/** Lets the endpoint write everything, and the client read everything. */
async function endGracefully({ worker, client, endpoint, transfer }: Setup, end: GracefulEnd): Promise<Outcome> {
  const { bytes, endsAfter } = transfer;
  const written = writeInPieces(endpoint, transfer).then(() => endpoint.end());
  await client.readUntil(Math.floor(bytes * endsAfter));
  if (end === 'FIN by the client') client.socket.end();
  if (end === 'listener close') worker.apply({ kind: 'close-listener', listener: worker.listener });
  // The descriptor is still open when the event is emitted.
  let received = 0;
  client.socket.once('end', () => {
    received = receivedByKernel(client.socket).bytes;
  });
  await client.readToEnd();
  client.socket.end();
  await written;
  await untilEnded(worker);
  assert.deepEqual(
    { received, sent: worker.row[SENT], read: client.received },
    { received: bytes, sent: bytes, read: bytes },
  );
  return 'completed';
}

/** Lets the client read a part, waits until the client's kernel has acknowledged what it has, and ends the connection. */
async function endAbortively({ worker, client, endpoint, transfer }: Setup, end: AbortiveEnd): Promise<Outcome> {
  const { bytes, endsAfter, halfCloses } = transfer;
  const written = writeInPieces(endpoint, transfer).then(() => {
    // Libuv refuses to reset a connection while a FIN waits for the bytes before it.
    if ((halfCloses === 'endpoint' || halfCloses === 'both') && end !== 'RST by the endpoint') endpoint.end();
  });
  await client.connected;
  await client.readUntil(Math.floor(bytes * endsAfter));
  if (halfCloses === 'client' || halfCloses === 'both') await endWriting(client.socket);
  const before = await whenAcknowledged({ worker, client, endpoint }, () => {
    if (worker.row[ACTIVE] === 0) return;
    if (end === 'RST by the client') client.socket.resetAndDestroy();
    else if (end === 'RST by the endpoint') endpoint.resetAndDestroy();
    else if (end === 'idle timeout') worker.tick(IDLE_TICKS);
    else worker.apply(cutOff());
  });
  // The kernel may acknowledge more bytes at any time, for example when its persist timer expires, and they prolong the idle timeout.
  await untilEnded(worker, () => (end === 'idle timeout' ? worker.tick(IDLE_TICKS) : undefined));
  await written;
  const { sequence } = client.socket.destroyed ? before : receivedByKernel(client.socket);
  assert.equal(worker.row[SENT], sequence - (before.sequence - before.bytes));
  return before.isActive ? OUTCOMES[end] : 'completed';
}

function endWriting(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.end(resolve));
}

/**
 * Waits until the worker counts what the client's kernel has received, and then calls `run` at once: the kernel may send
 * more bytes later, for example when its persist timer expires. Returns what the client's kernel had received.
 */
async function whenAcknowledged(
  { worker, client, endpoint }: Omit<Setup, 'transfer'>,
  run: () => void,
): Promise<KernelReceipt & { readonly isActive: boolean }> {
  let before = '';
  return eventually(() => {
    worker.tick(1);
    const received = receivedByKernel(client.socket);
    const isActive = worker.row[ACTIVE] === 1;
    const state = [received.sequence, isActive, endpoint.bytesWritten, endpoint.writableLength].join();
    const isStable = state === before;
    before = state;
    assert.equal(worker.row[SENT], received.bytes);
    assert.ok(isStable, 'bytes are still moving');
    run();
    return { ...received, isActive };
  });
}

async function untilEnded({ row }: WorkerInTest, beforePoll: () => void = () => undefined): Promise<void> {
  await eventually(() => {
    if (row[ACTIVE] !== 0) beforePoll();
    assert.equal(row[ACTIVE], 0, 'the connection is still open');
  });
}

/** Writes until everything is written or the connection has ended. */
async function writeInPieces(endpoint: Socket, { bytes, pieces }: Transfer): Promise<void> {
  const minPiece = Math.ceil(bytes / MAX_PIECES);
  const closed = new Promise((resolve) => endpoint.once('close', resolve));
  for (let at = 0, index = 0; at < bytes && !endpoint.destroyed; index += 1) {
    const end = Math.min(bytes, at + Math.max(minPiece, pieces[index % pieces.length] ?? 0));
    const mayContinue = endpoint.write(source.subarray(at, end));
    at = end;
    if (mayContinue) await new Promise((resolve) => setImmediate(resolve));
    else await Promise.race([new Promise((resolve) => endpoint.once('drain', resolve)), closed]);
  }
}

function isAbortive(end: Transfer['end']): end is AbortiveEnd {
  return (ABORTIVE_ENDS as readonly string[]).includes(end);
}

function closed(server: Server): Promise<unknown> {
  return new Promise((resolve) => server.close(resolve));
}
