// Short connections that end in many ways, so that the kernel gives each descriptor to one connection after the other.
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { type RelayProcess, startRelayProcess } from './relay-process.ts';

const CONNECTIONS = 6_000;
const AT_ONCE = 64;
const HEADER_BYTES = 8;
const MAX_BYTES = 100_000;
/** Ends the test soon if the relay forgets a connection. */
const MAX_SILENCE_MS = 10_000;

const ENDS = ['echo', 'half-close', 'reset while sending', 'reset while receiving', 'reset by the endpoint'] as const;

interface Plan {
  readonly end: (typeof ENDS)[number];
  /** What the client sends: the index of the connection, after how many bytes the endpoint resets it, and random bytes. */
  readonly bytes: Buffer;
  /** After how many bytes a reset happens. */
  readonly resetAfter: number;
}

/** The bytes of a connection are a part of this array. The parts of two connections are never equal. */
const source = randomBytes(CONNECTIONS + MAX_BYTES);
const failures: string[] = [];

function planOf(index: number): Plan {
  const end = ENDS[randomInt(ENDS.length)] ?? 'echo';
  const length = randomInt(2) === 0 ? randomInt(1, 2_000) : randomInt(1, MAX_BYTES);
  const header = Buffer.alloc(HEADER_BYTES);
  const resetAfter = randomInt(1, length + HEADER_BYTES);
  header.writeUInt32BE(index);
  header.writeUInt32BE(end === 'reset by the endpoint' ? resetAfter : 0, 4);
  return { end, bytes: Buffer.concat([header, source.subarray(index, index + length)]), resetAfter };
}

test('connections that reuse descriptors never see bytes or events of each other', { timeout: 120_000 }, async () => {
  const plans = Array.from({ length: CONNECTIONS }, (_, index) => planOf(index));
  /** The connections of which the endpoint has received all bytes and FIN. */
  const complete = new Set<number>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => serve(socket, { plans, complete }));
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  const { port } = server.address() as { port: number };
  try {
    await using relay = await startRelayProcess([{ address: '127.0.0.1', port }]);
    const before = relay.descriptors();
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < CONNECTIONS) {
        const index = next++;
        const failure = await run(relay, plans[index] as Plan);
        if (failure !== undefined) failures.push(`connection ${index}: ${failure}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    assert.deepEqual(failures, []);
    await eventually(async () => assert.equal((await relay.report(1)).active, 0));
    const { outcomes, connections, unacknowledged, reported } = await relay.report();
    const clean = plans.flatMap(({ end }, index) => (end === 'echo' || end === 'half-close' ? [index] : []));
    assert.deepEqual(
      clean.filter((index) => !complete.has(index)),
      [],
    );
    assert.equal(connections, CONNECTIONS);
    assert.equal(unacknowledged, 0);
    assert.deepEqual(reported, []);
    const { completed = 0, 'reset-by-client': byClient = 0, 'reset-by-endpoint': byEndpoint = 0 } = outcomes;
    assert.ok(completed >= clean.length, `${completed} completed, ${clean.length} without a reset`);
    assert.equal(completed + byClient + byEndpoint, CONNECTIONS);
    await eventually(() => assert.equal(relay.descriptors(), before));
  } finally {
    server.close();
  }
});

/** Runs the client's side of a connection. Returns what was wrong. */
function run({ host, port }: RelayProcess, { end, bytes, resetAfter }: Plan): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
  let received = 0;
  let mismatch: string | undefined;
  let hasEnded = false;
  socket.once('connect', () => {
    if (end === 'reset while sending') {
      socket.write(bytes.subarray(0, resetAfter), () => socket.resetAndDestroy());
      return;
    }
    socket.write(bytes);
    if (end === 'half-close') socket.end();
  });
  socket.on('data', (chunk: Buffer) => {
    if (!chunk.equals(bytes.subarray(received, received + chunk.length)))
      mismatch ??= `other bytes after byte ${received}`;
    received += chunk.length;
    if (end === 'reset while receiving' && received >= resetAfter) socket.resetAndDestroy();
    else if (end === 'echo' && received >= bytes.length) socket.end();
  });
  socket.on('end', () => {
    hasEnded = true;
    socket.end();
  });
  socket.setTimeout(MAX_SILENCE_MS, () => socket.destroy(new Error('nothing happens any more')));
  let code: string | undefined;
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code ?? error.message;
  });
  socket.on('close', () => {
    const isClean = end === 'echo' || end === 'half-close';
    if (mismatch !== undefined) resolve(mismatch);
    else if (isClean && (!hasEnded || code !== undefined || received !== bytes.length))
      resolve(`${end}: ${code ?? 'no FIN'} after ${received} of ${bytes.length} bytes`);
    else if (end === 'reset by the endpoint' && code !== 'ECONNRESET')
      resolve(`${end}: ${code ?? 'FIN'} instead of a reset`);
    else resolve(undefined);
  });
  return promise;
}

/** Runs the endpoint's side of a connection: echoes, and checks that all bytes are those of one connection. */
function serve(socket: Socket, { plans, complete }: { plans: readonly Plan[]; complete: Set<number> }): void {
  let plan: Plan | undefined;
  let head = Buffer.alloc(0);
  let received = 0;
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => {
    let chunk = data;
    if (plan === undefined) {
      head = Buffer.concat([head, data]);
      if (head.length < HEADER_BYTES) return;
      plan = plans[head.readUInt32BE()];
      if (plan === undefined) failures.push('the endpoint received an unknown header');
      chunk = head;
    }
    const { bytes = Buffer.alloc(0), end, resetAfter = 0 } = plan ?? {};
    if (!chunk.equals(bytes.subarray(received, received + chunk.length)))
      failures.push(`the endpoint received other bytes after byte ${received} of connection ${bytes.readUInt32BE()}`);
    received += chunk.length;
    if (end === 'reset by the endpoint' && received >= resetAfter) socket.resetAndDestroy();
    else socket.write(chunk);
  });
  socket.on('end', () => {
    if (plan !== undefined && received === plan.bytes.length) complete.add(plan.bytes.readUInt32BE());
    socket.end();
  });
}
