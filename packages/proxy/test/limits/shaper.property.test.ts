import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BandwidthLimiter } from '../../src/limits/bandwidth-limiter.ts';
import { configureLimiter, Limiter, type LimiterConfig } from '../../src/limits/limiter.ts';
import { createLimiterStateMemory, LimiterState } from '../../src/limits/limiter-state.ts';
import { SessionThrottle, Shaper } from '../../src/limits/shaper.ts';

const NONE = Number.POSITIVE_INFINITY;
const TENANT = 1;
const FIRST_SERVICE = 2;
const MS = 1_000_000n;
const START = 1_000_000_000_000n;
/** As the timer of a worker. */
const TICK_MS = 10;

/** Workers with a clock of the test's, whose streams always have `chunk` bytes more to read. */
class Model {
  now = START;
  readonly #sheet: LimiterState;
  readonly #workers: WorkerModel[];
  readonly streams: Stream[] = [];

  constructor(workers: number) {
    const memory = createLimiterStateMemory(workers);
    this.#sheet = new LimiterState(memory);
    this.#workers = Array.from({ length: workers }, (_, column) => {
      const sheet = new LimiterState(memory);
      const budgets = new Map<number, Limiter>();
      const budget = (row: number): Limiter => {
        const known = budgets.get(row) ?? new Limiter(sheet, { row, column });
        budgets.set(row, known);
        return known;
      };
      return { shaper: new Shaper(() => this.now), budget };
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
    };
    configureLimiter(this.#sheet, row, { limits, now: this.now });
  }

  open(worker: number, { chunk, service = FIRST_SERVICE }: { chunk: number; service?: number }): Stream {
    const { shaper, budget } = this.#workers[worker] as WorkerModel;
    const budgets = { service: budget(service), tenant: budget(TENANT) };
    const stream: Stream = { chunk, read: 0, isReading: false, pacing: undefined as never };
    const pacing = new SessionThrottle(shaper.limitersFor(budgets), {
      onReadAllowed: () => {
        stream.isReading = true;
      },
    });
    Object.assign(stream, { pacing, isReading: pacing.mayRead('in', 0) });
    this.streams.push(stream);
    return stream;
  }

  /** One millisecond: what may be read is; every 10 ms those that wait are looked at, worker after worker. */
  step(): void {
    this.now += MS;
    for (const stream of this.streams) {
      // A connection reads at most so often in a turn.
      for (let reads = 0; stream.isReading && reads < 4; reads += 1) {
        stream.read += stream.chunk;
        stream.isReading = stream.pacing.mayRead('in', stream.chunk);
      }
    }
    const elapsed = Number((this.now - START) / MS);
    this.#workers.forEach(({ shaper }, index) => {
      if ((elapsed + index * 3) % TICK_MS === 0) shaper.serve();
    });
  }

  run(ms: number, beside: () => void = () => undefined): void {
    for (let elapsed = 0; elapsed < ms; elapsed += 1) {
      this.step();
      beside();
    }
  }

  lane(worker: number, service: number = FIRST_SERVICE): BandwidthLimiter {
    const { shaper, budget } = this.#workers[worker] as WorkerModel;
    return shaper.limitersFor({ service: budget(service), tenant: budget(TENANT) }).in;
  }

  get read(): number {
    return this.streams.reduce((sum, { read }) => sum + read, 0);
  }

  close(): void {
    for (const { pacing } of this.streams) pacing.end();
    for (const { shaper } of this.#workers) shaper.serve();
  }
}

interface WorkerModel {
  readonly shaper: Shaper;
  readonly budget: (row: number) => Limiter;
}

interface Stream {
  readonly chunk: number;
  readonly pacing: SessionThrottle;
  read: number;
  isReading: boolean;
}

const streams = fc.array(
  fc.record({ worker: fc.nat(2), chunk: fc.constantFrom(100, 4_096, 16_384, 65_536), service: fc.constantFrom(2, 3) }),
  { minLength: 1, maxLength: 12 },
);

test('all streams of a tenant together keep to its rate, within 5 % over 3 seconds and beside one chunk each', () => {
  fc.assert(
    fc.property(streams, fc.integer({ min: 2_000_000, max: 400_000_000 }), (opened, bitsPerSecond) => {
      const model = new Model(3);
      model.limit(TENANT, bitsPerSecond);
      for (const { worker, ...stream } of opened) model.open(worker, stream);
      model.run(1_000);
      const before = model.read;
      model.run(3_000);
      const exact = (3 * bitsPerSecond) / 8;
      const chunks = opened.reduce((sum, { chunk }) => sum + chunk, 0);
      const able = opened.reduce((sum, { chunk }) => sum + 3_000 * 4 * chunk, 0);
      const passed = model.read - before;
      assert.ok(passed <= exact * 1.05 + chunks, `${passed} of ${exact}`);
      assert.ok(passed >= Math.min(exact * 0.95, able * 0.2) - chunks, `${passed} of ${exact}`);
      model.close();
    }),
    { numRuns: 40 },
  );
});

test('streams that always have more get equal shares, also when most are at one worker', () => {
  const model = new Model(2);
  model.limit(TENANT, 20_000_000);
  for (let stream = 0; stream < 9; stream += 1) model.open(0, { chunk: 65_536 });
  model.open(1, { chunk: 65_536 });
  model.run(10_000);
  const shares = model.streams.map(({ read }) => read);
  assert.ok(Math.max(...shares) <= 1.5 * Math.min(...shares), shares.join(' '));
  model.close();
});

test('a limit of the Service tightens, and leaves the rest of the tenant to its other Services', () => {
  const model = new Model(1);
  model.limit(TENANT, 16_000_000);
  model.limit(2, 4_000_000);
  const tight = model.open(0, { chunk: 4_096, service: 2 });
  const other = model.open(0, { chunk: 4_096, service: 3 });
  model.run(4_000);
  assert.ok(Math.abs(tight.read / 2_000_000 - 1) < 0.05, `${tight.read}`);
  assert.ok(Math.abs(other.read / 6_000_000 - 1) < 0.05, `${other.read}`);
  model.close();
});

test('a stream that says little is not held up by those that send all they can for longer than they are themselves', () => {
  const model = new Model(1);
  model.limit(TENANT, 10_000_000);
  for (let stream = 0; stream < 4; stream += 1) model.open(0, { chunk: 62_500 });
  const small = model.open(0, { chunk: 200 });
  model.run(10_000);
  // Each round of the four takes 200 ms, so it comes to word about 50 times.
  assert.ok(small.read >= 40 * 200, `${small.read}`);
  model.close();
});

test('who comes while the tenant is in debt waits; thousands who come at once do not read all at once', () => {
  const model = new Model(1);
  model.limit(TENANT, 8_000_000);
  model.open(0, { chunk: 65_536 });
  model.run(5);
  for (let stream = 0; stream < 2_000; stream += 1) model.open(0, { chunk: 65_536 });
  model.run(3_000);
  assert.ok(model.read <= 3_000_000 * 1.1 + 4 * 65_536, `${model.read}`);
  model.close();
});

test('limits come and go while streams are open; 0 stops them until it is raised', () => {
  const model = new Model(1);
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

test('what cannot be paused passes while there is credit, and halves the rate with streams that wait', () => {
  const model = new Model(1);
  model.limit(TENANT, 8_000_000);
  const lane = model.lane(0);
  let passed = 0;
  const offer = (): void => {
    for (let datagram = 0; datagram < 10; datagram += 1) if (lane.tryTake(1_000)) passed += 1_000;
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
