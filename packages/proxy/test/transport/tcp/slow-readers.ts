// PERFORMANCE 2: a read buffer that is shared, and that a waiting write still points to, would give one tenant's bytes to
// another. Many pairs relay at once, each with a pattern of its own, to readers that stop and go.
import assert from 'node:assert/strict';
import { type ByteCountingServer, patternServer, type TestClient } from '@weir/testkit';
import { StreamRecorder } from './stream-recorder.ts';
import type { StreamSetup } from './stream-setup.ts';
import { startTestListener, type TestListener } from './test-listener.ts';

const READERS = 12;
/** More than the kernel takes for a reader that stands still. */
const BYTES = 10_000_000;
/** Not a multiple of any buffer. */
const STEP = 1_234_567;

interface Pair {
  readonly client: TestClient;
  readonly source: ByteCountingServer;
  /** Resolves when the reader holds its source up. */
  readonly stuck: Promise<void>;
}

/** The client fails the test by itself at the first foreign byte. */
export async function testManySlowReaders(world: StreamSetup): Promise<void> {
  using door = await startTestListener(world.transport);
  const pairs: Pair[] = [];
  for (let seed = 0; seed < READERS; seed += 1) pairs.push(await relaying(world, door, seed));
  try {
    await Promise.all(pairs.map(({ stuck }) => stuck));
    await Promise.all(pairs.map(readSlowly));
    for (const { client } of pairs) assert.equal(client.received, BYTES);
  } finally {
    await Promise.all(pairs.flatMap(({ client, source }) => [client.close(), source.close()]));
  }
}

/** The smallest relay there is: source to client. */
async function relaying({ transport, connect }: StreamSetup, door: TestListener, seed: number): Promise<Pair> {
  const source = await patternServer({ bytes: BYTES, seed });
  const arrival = door.next();
  const client = await connect({ host: door.host, port: door.port, expectPattern: seed, timeoutMs: 60_000 });
  client.pause();
  const { promise: stuck, resolve: getStuck } = Promise.withResolvers<void>();
  const { stream: to, events: toEvents } = await arrival;
  const fromEvents = new StreamRecorder();
  fromEvents.onBytes = (from, bytes) => {
    if (to.write(bytes) === 0) return;
    from.readStop();
    getStuck();
  };
  const from = transport.connect({ address: source.host, port: source.port }, fromEvents);
  toEvents.onDrained = () => from.readStart();
  void fromEvents.until(() => fromEvents.hasEnded).then(() => to.shutdown());
  return { client, source, stuck };
}

async function readSlowly({ client }: Pair): Promise<void> {
  for (let wanted = STEP; wanted < BYTES; wanted += STEP) {
    client.resume();
    await client.waitForBytes(wanted);
    client.pause();
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.resume();
  await client.ended;
}
