import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Loop, type LoopOptions, ManualClock } from '../src/index.ts';

interface Bench {
  readonly clock: ManualClock;
  readonly loop: Loop;
  /** The monotonic start times of the runs, in milliseconds. */
  readonly starts: number[];
  readonly errors: { message: string; failures: number; retryInMs: number }[];
}

type Run = (bench: Bench, signal: AbortSignal) => Promise<void> | void;

function bench(run: Run = () => {}, options: Partial<LoopOptions> = {}): Bench {
  const clock = new ManualClock();
  const made: Bench = {
    clock,
    starts: [],
    errors: [],
    loop: new Loop({
      run(signal) {
        made.starts.push(clock.monotonic());
        return run(made, signal);
      },
      gapMs: 5,
      resyncMs: 600_000,
      retryMs: [1000, 30_000],
      clock,
      random: () => 0.999_999,
      onError: (error, next) => void made.errors.push({ message: (error as Error).message, ...next }),
      ...options,
    }),
  };
  return made;
}

test('does not run before the first trigger', async () => {
  const { clock, starts } = bench();
  await clock.advance(1_000_000);
  assert.deepEqual(starts, []);
});

test('merges triggers before a run into one run', async () => {
  const { clock, loop, starts } = bench();
  for (let count = 0; count < 100; count += 1) loop.trigger();
  await clock.advance(1000);
  assert.deepEqual(starts, [0]);
});

test('runs once more after the gap when triggered during a run', async () => {
  const { clock, loop, starts } = bench(
    ({ clock: time }) => new Promise((resolve) => void time.setTimeout(resolve, 100)),
  );
  loop.trigger();
  await clock.advance(50);
  loop.trigger();
  loop.trigger();
  await clock.advance(500);
  assert.deepEqual(starts, [0, 105]);
});

test('never runs twice at the same time', async () => {
  let running = 0;
  const { clock, loop, starts } = bench(async ({ clock: time, loop: self }) => {
    running += 1;
    assert.equal(running, 1);
    self.trigger();
    await new Promise<void>((resolve) => void time.setTimeout(resolve, 20));
    running -= 1;
  });
  loop.trigger();
  await clock.advance(100);
  assert.deepEqual(starts, [0, 25, 50, 75, 100]);
});

test('a trigger within the gap waits for its end, a later one runs at once', async () => {
  const { clock, loop, starts } = bench();
  loop.trigger();
  await clock.advance(2);
  loop.trigger();
  await clock.advance(98);
  loop.trigger();
  await clock.advance(0);
  assert.deepEqual(starts, [0, 5, 100]);
});

test('without triggers it runs once per resync gap', async () => {
  const { clock, loop, starts } = bench();
  loop.trigger();
  await clock.advance(1_300_000);
  assert.deepEqual(starts, [0, 600_000, 1_200_000]);
});

test('does not resync if resyncMs is Infinity', async () => {
  const { clock, loop, starts } = bench(() => {}, { resyncMs: Number.POSITIVE_INFINITY });
  loop.trigger();
  await clock.advance(10_000_000);
  assert.deepEqual(starts, [0]);
});

test('reports failed runs and retries with growing waits until a run succeeds', async () => {
  let remaining = 6;
  const { clock, loop, starts, errors } = bench(() => {
    remaining -= 1;
    if (remaining > 0) throw new Error('away');
  });
  loop.trigger();
  await clock.advance(90_000);
  assert.deepEqual(
    errors.map(({ retryInMs }) => retryInMs),
    [2000, 4000, 8000, 16_000, 30_000],
  );
  assert.deepEqual(errors[0], { message: 'away', failures: 1, retryInMs: 2000 });
  assert.deepEqual(starts, [0, 2000, 6000, 14_000, 30_000, 60_000]);
});

test('resets the backoff after a successful run', async () => {
  const outcomes = ['fail', 'fail', 'ok', 'fail'];
  const { clock, loop, errors } = bench(() => {
    if (outcomes.shift() === 'fail') throw new Error('away');
  });
  loop.trigger();
  await clock.advance(10_000);
  loop.trigger();
  await clock.advance(0);
  assert.deepEqual(
    errors.map(({ failures }) => failures),
    [1, 2, 1],
  );
});

test('shortens the backoff on a trigger, but not below the minimum wait after the failure', async () => {
  const { clock, loop, starts } = bench(() => Promise.reject(new Error('away')));
  loop.trigger();
  await clock.advance(30_000); // Runs at 0, 2000, 6000, 14000, 30000; the next run is due at 60000.
  await clock.advance(200);
  loop.trigger();
  await clock.advance(799);
  assert.equal(starts.at(-1), 30_000);
  await clock.advance(1);
  assert.equal(starts.at(-1), 31_000);
});

test('limits frequent triggers during an outage to one attempt per minimum wait', async () => {
  const { clock, loop, starts } = bench(() => Promise.reject(new Error('away')));
  for (let elapsedMs = 0; elapsedMs < 9_900; elapsedMs += 10) {
    loop.trigger();
    await clock.advance(10);
  }
  assert.equal(starts.length, 10);
});

test('idle resolves when a successful run has followed every trigger', async () => {
  let isAway = true;
  const { clock, loop } = bench(() => {
    if (isAway) throw new Error('away');
  });
  await loop.idle();
  loop.trigger();
  let isIdle = false;
  const idle = loop.idle().then(() => {
    isIdle = true;
  });
  await clock.advance(1000);
  assert.equal(isIdle, false);
  isAway = false;
  await clock.advance(1000);
  await idle;
});

test('close aborts the current run, waits for its end and prevents other runs', async () => {
  let aborted = false;
  let finish = (): void => {};
  const { clock, loop, starts, errors } = bench((_bench, signal) => {
    signal.addEventListener('abort', () => {
      aborted = true;
    });
    return new Promise((_resolve, reject) => {
      finish = () => reject(signal.reason);
    });
  });
  loop.trigger();
  await clock.advance(0);
  loop.trigger();
  let isClosed = false;
  const closed = loop.close().then(() => {
    isClosed = true;
  });
  await clock.advance(100);
  assert.deepEqual({ aborted, isClosed }, { aborted: true, isClosed: false });
  finish();
  await closed;
  await loop.idle();
  loop.trigger();
  await clock.advance(10_000_000);
  assert.deepEqual({ starts, errors, timers: clock.pendingTimers }, { starts: [0], errors: [], timers: 0 });
});

test('reports an error other than the abort error during close', async () => {
  let fail = (): void => {};
  const { clock, loop, errors } = bench(
    () =>
      new Promise((_resolve, reject) => {
        fail = () => reject(new Error('half written'));
      }),
  );
  loop.trigger();
  await clock.advance(0);
  const closed = loop.close();
  fail();
  await closed;
  assert.deepEqual(
    errors.map(({ message }) => message),
    ['half written'],
  );
});

test('close resolves at once for a waiting, unused or closed loop', async () => {
  const { clock, loop } = bench();
  loop.trigger();
  await clock.advance(0);
  await loop.close();
  await loop.close();
  await bench().loop.close();
  assert.equal(clock.pendingTimers, 0);
});
