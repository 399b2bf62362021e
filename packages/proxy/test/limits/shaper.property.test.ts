import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Limiters } from '../../src/limits/admission.ts';
import type { BandwidthLimiter } from '../../src/limits/bandwidth-limiter.ts';
import { configureLimiter, Limiter, type LimiterConfig } from '../../src/limits/limiter.ts';
import { createLimiterStateMemory, LimiterState } from '../../src/limits/limiter-state.ts';
import { SessionThrottle, Shaper } from '../../src/limits/shaper.ts';

const NONE = Number.POSITIVE_INFINITY;
const TENANT = 1;
const FIRST_SERVICE = 2;
const MS = 1_000_000n;
const START = 1_000_000_000_000n;
/** The interval of the shaper's timer. */
const TICK_MS = 10;

/** Simulates workers on a simulated clock. Each stream always has `chunk` more bytes to read. */
class ShaperModel {
  now = START;
  readonly #state: LimiterState;
  readonly #workers: WorkerModel[];
  readonly streams: Stream[] = [];

  constructor(workers: number) {
    const memory = createLimiterStateMemory(workers);
    this.#state = new LimiterState(memory);
    this.#workers = Array.from({ length: workers }, (_, workerSlot) => {
      const state = new LimiterState(memory);
      const limiters = new Map<number, Limiter>();
      const limiterFor = (row: number): Limiter => {
        const limiter = limiters.get(row) ?? new Limiter(state, { row, workerSlot });
        limiters.set(row, limiter);
        return limiter;
      };
      return { shaper: new Shaper(() => this.now), limiterFor };
    });
    this.limit(TENANT, NONE);
    for (let row = FIRST_SERVICE; row < 8; row += 1) this.limit(row, NONE);
  }

  limit(row: number, inBitsPerSecond: number): void {
    const limits: LimiterConfig = {
      connections: NONE,
      newConnectionsPerSecond: NONE,
      inBitsPerSecond,
      outBitsPerSecond: NONE,
      requestsPerSecond: NONE,
    };
    configureLimiter(this.#state, row, { limits, now: this.now });
  }

  /** `asksAgain`: whether the stream asks before the read that it was allowed, as an HTTP connection does. */
  open(
    worker: number,
    { chunk, service = FIRST_SERVICE, asksAgain = false }: { chunk: number; service?: number; asksAgain?: boolean },
  ): Stream {
    const { shaper } = this.#workers[worker] as WorkerModel;
    const limiters = this.limiters(worker, service);
    const stream: Stream = { chunk, read: 0, isReading: false, throttle: undefined as never };
    const throttle = new SessionThrottle(shaper, limiters, {
      onReadAllowed: () => {
        stream.isReading = !asksAgain || throttle.mayRead('in', 0);
      },
    });
    Object.assign(stream, { throttle, isReading: throttle.mayRead('in', 0) });
    this.streams.push(stream);
    return stream;
  }

  /**
   * Simulates one millisecond. Streams read what they may. Every `TICK_MS` the shaper of each worker serves its waiting
   * readers.
   */
  step(): void {
    this.now += MS;
    for (const stream of this.streams) {
      // As in the proxy, a stream reads at most four times in one iteration of the event loop.
      for (let reads = 0; stream.isReading && reads < 4; reads += 1) {
        stream.read += stream.chunk;
        stream.isReading = stream.throttle.mayRead('in', stream.chunk);
      }
    }
    const elapsed = Number((this.now - START) / MS);
    this.#workers.forEach(({ shaper }, index) => {
      if ((elapsed + index * 3) % TICK_MS === 0) shaper.serve();
    });
  }

  run(ms: number, onStep: () => void = () => undefined): void {
    for (let elapsed = 0; elapsed < ms; elapsed += 1) {
      this.step();
      onStep();
    }
  }

  bandwidthLimiter(worker: number, service: number = FIRST_SERVICE): BandwidthLimiter {
    const { shaper } = this.#workers[worker] as WorkerModel;
    return shaper.limitersFor(this.limiters(worker, service)).in;
  }

  limiters(worker: number, service: number): Limiters {
    const { limiterFor } = this.#workers[worker] as WorkerModel;
    return { service: limiterFor(service), tenant: limiterFor(TENANT) };
  }

  get read(): number {
    return this.streams.reduce((sum, { read }) => sum + read, 0);
  }

  close(): void {
    for (const { throttle } of this.streams) throttle.end();
    for (const { shaper } of this.#workers) shaper.serve();
  }
}

interface WorkerModel {
  readonly shaper: Shaper;
  readonly limiterFor: (row: number) => Limiter;
}

interface Stream {
  readonly chunk: number;
  readonly throttle: SessionThrottle;
  read: number;
  isReading: boolean;
}

const streams = fc.array(
  fc.record({ worker: fc.nat(2), chunk: fc.constantFrom(100, 4_096, 16_384, 65_536), service: fc.constantFrom(2, 3) }),
  { minLength: 1, maxLength: 12 },
);

test('streams of a tenant together stay within 5 % of its rate over 3 seconds, plus one chunk per stream', () => {
  fc.assert(
    fc.property(streams, fc.integer({ min: 2_000_000, max: 400_000_000 }), (opened, bitsPerSecond) => {
      const model = new ShaperModel(3);
      model.limit(TENANT, bitsPerSecond);
      for (const { worker, ...stream } of opened) model.open(worker, stream);
      model.run(1_000);
      const before = model.read;
      model.run(3_000);
      const exact = (3 * bitsPerSecond) / 8;
      const chunks = opened.reduce((sum, { chunk }) => sum + chunk, 0);
      const readable = opened.reduce((sum, { chunk }) => sum + 3_000 * 4 * chunk, 0);
      const passed = model.read - before;
      assert.ok(passed <= exact * 1.05 + chunks, `${passed} of ${exact}`);
      assert.ok(passed >= Math.min(exact * 0.95, readable * 0.2) - chunks, `${passed} of ${exact}`);
      model.close();
    }),
    { numRuns: 40 },
  );
});

test('busy streams get equal shares even if one worker has most of them', () => {
  const model = new ShaperModel(2);
  model.limit(TENANT, 20_000_000);
  for (let stream = 0; stream < 9; stream += 1) model.open(0, { chunk: 65_536 });
  model.open(1, { chunk: 65_536 });
  model.run(10_000);
  const shares = model.streams.map(({ read }) => read);
  assert.ok(Math.max(...shares) <= 1.5 * Math.min(...shares), shares.join(' '));
  model.close();
});

test('a limit of a Service leaves the rest of the tenant’s rate to its other Services', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 16_000_000);
  model.limit(2, 4_000_000);
  const tight = model.open(0, { chunk: 4_096, service: 2 });
  const other = model.open(0, { chunk: 4_096, service: 3 });
  model.run(4_000);
  assert.ok(Math.abs(tight.read / 2_000_000 - 1) < 0.05, `${tight.read}`);
  assert.ok(Math.abs(other.read / 6_000_000 - 1) < 0.05, `${other.read}`);
  model.close();
});

test('a stream with little data waits no longer than streams with much data', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 10_000_000);
  for (let stream = 0; stream < 4; stream += 1) model.open(0, { chunk: 62_500 });
  const small = model.open(0, { chunk: 200 });
  model.run(10_000);
  // Each round of the four busy streams takes 200 ms, so the small stream is served about 50 times.
  assert.ok(small.read >= 40 * 200, `${small.read}`);
  model.close();
});

test('2,000 streams that open while the tenant is in debt wait, and do not read at the same time', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 8_000_000);
  model.open(0, { chunk: 65_536 });
  model.run(5);
  for (let stream = 0; stream < 2_000; stream += 1) model.open(0, { chunk: 65_536 });
  model.run(3_000);
  assert.ok(model.read <= 3_000_000 * 1.1 + 4 * 65_536, `${model.read}`);
  model.close();
});

for (const [workers, chunk] of [
  [1, 4_096],
  [4, 4_096],
  [4, 100],
] as const)
  test(`streams on ${workers} worker(s) that end after one read of ${chunk} bytes stay within the rate`, () => {
    const model = new ShaperModel(workers);
    model.limit(TENANT, 8_000_000);
    let read = 0;
    model.run(1_000, () => {
      for (let opened = 0; opened < 16_384 / chunk; opened += 1) {
        const { throttle, isReading } = model.open(opened % workers, { chunk });
        if (isReading) {
          read += chunk;
          throttle.mayRead('in', chunk);
        }
        throttle.end();
        model.streams.pop();
      }
    });
    assert.ok(read >= 900_000 && read <= 1_100_000, `${read}`);
  });

test('connections that ask before each of their requests stay within the rate', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 80_000_000);
  for (let stream = 0; stream < 64; stream += 1) model.open(0, { chunk: 300 });
  model.run(1_000, () => {
    for (const stream of model.streams) if (stream.isReading) stream.isReading = stream.throttle.mayRead('in', 0);
  });
  assert.ok(model.read >= 9_500_000 && model.read <= 10_600_000, `${model.read}`);
  model.close();
});

test('streams that ask again when they may read are not sent back to the end of the queue', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 1_000_000);
  for (let stream = 0; stream < 3; stream += 1) model.open(0, { chunk: 6_250, asksAgain: true });
  model.run(3_000);
  for (const { read } of model.streams) assert.ok(read >= 100_000 && read <= 150_000, `${read}`);
  model.close();
});

test('new streams of a worker that has charged nothing wait if another worker has overdrawn the rate', () => {
  const model = new ShaperModel(2);
  model.limit(TENANT, 8_000_000);
  // The second stream finds that nobody waits, which the worker remembers.
  for (let stream = 0; stream < 2; stream += 1) model.open(1, { chunk: 1 });
  for (let stream = 0; stream < 10; stream += 1) model.open(0, { chunk: 65_536 });
  model.run(5);
  const { read } = model;
  for (let stream = 0; stream < 100; stream += 1) model.open(1, { chunk: 50_000 });
  assert.ok(model.streams.slice(-100).every(({ isReading }) => !isReading));
  model.run(1);
  assert.ok(model.read - read <= 50_000, `${model.read - read}`);
  model.close();
});

test('a limit can be set, removed, and set to 0, which stops open streams until it is raised', () => {
  const model = new ShaperModel(1);
  const stream = model.open(0, { chunk: 1_000 });
  model.run(100);
  assert.equal(stream.read, 400_000);
  model.limit(TENANT, 0);
  model.run(100);
  const stopped = stream.read;
  model.run(2_000);
  assert.equal(stream.read, stopped);
  model.limit(TENANT, 8_000_000);
  model.run(1_000);
  assert.ok(Math.abs((stream.read - stopped) / 1_000_000 - 1) < 0.1, `${stream.read - stopped}`);
  model.limit(TENANT, NONE);
  const before = stream.read;
  model.run(100);
  assert.ok(stream.read - before >= 300_000);
  model.close();
});

test('a limit of a Service can be set and removed while the tenant has a limit', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 16_000_000);
  const stream = model.open(0, { chunk: 4_096 });
  const expect = (bytes: number): void => {
    const before = stream.read;
    model.run(4_000);
    const passed = stream.read - before;
    assert.ok(Math.abs(passed / bytes - 1) < 0.05, `${passed} of ${bytes}`);
  };
  expect(8_000_000);
  model.limit(FIRST_SERVICE, 4_000_000);
  expect(2_000_000);
  model.limit(FIRST_SERVICE, NONE);
  expect(8_000_000);
  model.close();
});

test('a stream that waits for its Service continues at once when it moves to another Service, and only once', () => {
  const model = new ShaperModel(1);
  model.limit(FIRST_SERVICE, 8_000);
  const stream = model.open(0, { chunk: 65_536 });
  model.run(100);
  assert.equal(stream.isReading, false);
  stream.throttle.moveTo(model.limiters(0, FIRST_SERVICE + 1));
  assert.equal(stream.throttle.mayRead('in', 0), true);
  model.run(100_000);
  assert.equal(stream.isReading, false, 'the former Service does not resume the stream');
  stream.throttle.moveTo(model.limiters(0, FIRST_SERVICE));
  assert.equal(stream.throttle.mayRead('in', 65_536), false);
  model.close();
});

test('datagrams pass while there is credit, and share the rate with waiting streams', () => {
  const model = new ShaperModel(1);
  model.limit(TENANT, 8_000_000);
  const limiter = model.bandwidthLimiter(0);
  let passed = 0;
  const offer = (): void => {
    for (let datagram = 0; datagram < 10; datagram += 1) if (limiter.tryTake(1_000)) passed += 1_000;
  };
  model.run(3_000, offer);
  assert.ok(Math.abs(passed / 3_000_000 - 1) < 0.05, `${passed}`);
  const streams = [model.open(0, { chunk: 5_000 }), model.open(0, { chunk: 5_000 })];
  passed = 0;
  model.run(3_000, offer);
  const read = streams.reduce((sum, stream) => sum + stream.read, 0);
  assert.ok(Math.abs((passed + read) / 3_000_000 - 1) < 0.1, `${passed} + ${read}`);
  assert.ok(Math.min(passed, read) > 900_000, `${passed} + ${read}`);
  model.close();
});

test('datagrams that are charged together keep to the rate, and dropped datagrams are not charged', () => {
  const model = new ShaperModel(2);
  const bytesPerMs = 100_000;
  model.limit(TENANT, bytesPerMs * 8_000);
  const limiters = [model.bandwidthLimiter(0), model.bandwidthLimiter(1), model.bandwidthLimiter(1, FIRST_SERVICE + 1)];
  const passed: number[] = [];
  model.run(2_000, () => {
    let bytes = 0;
    for (let datagram = 0; datagram < 100; datagram += 1)
      for (const limiter of limiters) if (limiter.tryTake(1_000)) bytes += 1_000;
    passed.push(bytes);
  });
  // The first 50 ms have the credit of the burst.
  const steady = passed.slice(100);
  const mean = steady.reduce((sum, bytes) => sum + bytes, 0) / steady.length;
  assert.ok(Math.abs(mean / bytesPerMs - 1) < 0.01, `${mean}`);
  // Each limiter may pass half a millisecond of the rate before its bytes are charged.
  assert.ok(Math.max(...steady) <= bytesPerMs * (1 + limiters.length / 2), `${Math.max(...steady)}`);
  model.close();
});
