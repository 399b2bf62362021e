import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkerLiveness } from '../../src/supervisor/worker-liveness.ts';

const STEP_MS = 250;

/** Checks four times a second until the worker counts as dead. Returns the time, or undefined if it is alive after `untilMs`. */
function deathOf(
  worker: (now: number) => { readonly turns: number; readonly progress: number },
  { untilMs = 120_000 } = {},
): number | undefined {
  const liveness = new WorkerLiveness(0);
  for (let now = STEP_MS; now <= untilMs; now += STEP_MS) {
    if (liveness.check(worker(now), now) !== undefined) return now;
  }
  return undefined;
}

test('a worker whose timers run is alive', () => {
  assert.equal(
    deathOf((now) => ({ turns: now, progress: 0 })),
    undefined,
  );
});

test('a worker that makes progress is alive although its timers do not run', () => {
  const busy = (now: number) => ({ turns: 1, progress: now });
  assert.equal(deathOf(busy, { untilMs: 59_000 }), undefined);
});

test('a worker without progress for two seconds is dead', () => {
  assert.equal(
    deathOf((now) => ({ turns: Math.min(now, 10_000), progress: Math.min(now, 12_000) })),
    14_000,
  );
});

test('a worker whose turn does not end within a minute is dead even if it makes progress', () => {
  assert.equal(
    deathOf((now) => ({ turns: 1, progress: now })),
    60_250,
  );
});

test('a worker that starts has 20 seconds, even if it makes no progress', () => {
  assert.equal(
    deathOf(() => ({ turns: 0, progress: 0 })),
    20_000,
  );
});

test('a worker is alive after a pause of the whole process', () => {
  const liveness = new WorkerLiveness(0);
  const counts = { turns: 5, progress: 5 };
  assert.equal(liveness.check(counts, 250), undefined);
  assert.equal(liveness.check(counts, 90_000), undefined);
  assert.equal(liveness.check(counts, 91_000), undefined);
  assert.equal(liveness.check(counts, 92_000), 2_000);
});
