// Tests that a pending write does not refer to the shared read buffer, because the write could then send one tenant's
// bytes to another. Many pairs of a source and a client relay at the same time. Each pair has its own pattern, and its
// client pauses and resumes.
import assert from 'node:assert/strict';
import { type ByteCountingServer, patternServer, type TestClient } from '@weir/testkit';
import { StreamRecorder } from './stream-recorder.ts';
import type { StreamSetup } from './stream-setup.ts';
import { startTestListener, type TestListener } from './test-listener.ts';

export interface SlowReadersOptions {
  readonly readers: number;
  /** The bytes that each source sends: more than the kernel buffers for a reader that does not read. */
  readonly bytes: number;
  /** Returns the bytes that a client reads before its next pause. */
  nextStep(): number;
  /** Called when no client has read a byte yet and all relays have stopped reading. */
  beforeReading?(): void;
}

/** The step is not a multiple of any buffer size. */
const DEFAULT_OPTIONS: SlowReadersOptions = { readers: 12, bytes: 10_000_000, nextStep: () => 1_234_567 };

interface Pair {
  readonly client: TestClient;
  readonly source: ByteCountingServer;
  /** Resolves when the relay stops reading from the source, because the client does not read. */
  readonly stopped: Promise<void>;
}

/** Relays to many slow clients. A client ends with an error at the first byte that does not match its pattern. */
export async function testManySlowReaders(
  setup: StreamSetup,
  options: SlowReadersOptions = DEFAULT_OPTIONS,
): Promise<void> {
  const { readers, bytes, beforeReading } = options;
  using listener = await startTestListener(setup.transport);
  const pairs: Pair[] = [];
  for (let seed = 0; seed < readers; seed += 1) pairs.push(await startRelay(setup, listener, { seed, bytes }));
  try {
    await Promise.all(pairs.map(({ stopped }) => stopped));
    beforeReading?.();
    await Promise.all(pairs.map((pair) => readSlowly(pair, options)));
    for (const { client } of pairs) assert.equal(client.received, bytes);
  } finally {
    await Promise.all(pairs.flatMap(({ client, source }) => [client.close(), source.close()]));
  }
}

/** Starts a source, a client, and a minimal relay from the source to the client. */
async function startRelay(
  { transport, connect }: StreamSetup,
  listener: TestListener,
  { seed, bytes }: { readonly seed: number; readonly bytes: number },
): Promise<Pair> {
  const source = await patternServer({ bytes, seed });
  const arrival = listener.next();
  const client = await connect({ host: listener.host, port: listener.port, expectPattern: seed, timeoutMs: 60_000 });
  client.pause();
  const { promise: stopped, resolve: resolveStopped } = Promise.withResolvers<void>();
  const { stream: to, events: toEvents } = await arrival;
  const fromEvents = new StreamRecorder();
  fromEvents.onBytes = (from, bytes) => {
    if (to.write(bytes) === 0) return;
    from.readStop();
    resolveStopped();
  };
  const from = transport.connect({ address: source.host, port: source.port }, fromEvents);
  toEvents.onDrained = () => from.readStart();
  void fromEvents
    .until(() => fromEvents.hasEnded)
    .then(() => {
      to.shutdown();
      from.shutdown();
    });
  return { client, source, stopped };
}

async function readSlowly({ client }: Pair, { bytes: total, nextStep }: SlowReadersOptions): Promise<void> {
  for (let wanted = nextStep(); wanted < total; wanted += nextStep()) {
    client.resume();
    await client.waitForBytes(wanted);
    client.pause();
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.resume();
  assert.deepEqual(await client.ended, { kind: 'end' });
}
