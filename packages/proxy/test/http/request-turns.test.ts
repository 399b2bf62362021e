import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_REQUESTS_PER_TURN, RequestTurns, type TenantTurns, type TurnTaker } from '../../src/http/request-turns.ts';

/** The turns of a worker whose event loop and clock the test advances. */
class TurnsInTest {
  /** The connections that had their turn, in order. */
  readonly served: string[] = [];
  /** How often the clock was read. */
  clockReads = 0;
  costMs = 0;
  #nowMs = 0;
  #task: (() => void) | undefined;
  readonly #run = (task: () => void): void => {
    assert.equal(this.#task, undefined);
    this.#task = task;
  };
  readonly #loop = { current: 1, nowMs: 0, runInNext: this.#run, runAtEnd: this.#run };
  readonly requests: RequestTurns = new RequestTurns({
    turns: this.#loop,
    now: () => {
      this.clockReads += 1;
      return this.#nowMs;
    },
  });

  connection(name: string, onTurn: () => void = () => {}): TurnTaker {
    return {
      nextWaiting: undefined,
      isWaiting: false,
      onTurn: () => {
        this.served.push(name);
        this.#nowMs += this.costMs;
        onTurn();
      },
    };
  }

  /** Sends one request on each of `count` new connections. Returns how many of the requests need not wait. */
  send(tenant: TenantTurns, name: string, count: number): number {
    let taken = 0;
    for (let each = 0; each < count; each += 1) if (tenant.tryTake(this.connection(name))) taken += 1;
    return taken;
  }

  /** Begins the next turn of the event loop. Returns which connections had their turn, or undefined if none waits. */
  turn(): string[] | undefined {
    this.#loop.current += 1;
    const task = this.#task;
    if (task === undefined) return undefined;
    this.#task = undefined;
    const before = this.served.length;
    task();
    return this.served.slice(before);
  }
}

test('begins the first requests of each tenant at once in each turn, without a look at the clock', () => {
  const test = new TurnsInTest();
  const [a, b] = [test.requests.of({}), test.requests.of({})];
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal(test.send(a, 'a', MAX_REQUESTS_PER_TURN), MAX_REQUESTS_PER_TURN);
    assert.equal(test.send(b, 'b', 1), 1);
    assert.equal(test.turn(), undefined);
  }
  assert.equal(test.clockReads, 0);
});

test('a tenant with one request does not wait for the thousands of another tenant', () => {
  const test = new TurnsInTest();
  const [a, b] = [test.requests.of({}), test.requests.of({})];
  assert.equal(test.send(a, 'a', 5_000), MAX_REQUESTS_PER_TURN);
  assert.equal(test.send(b, 'b', 1), 1);
});

test('serves tenants in turn, each with the same number of requests', () => {
  const test = new TurnsInTest();
  const [a, b] = [test.requests.of({}), test.requests.of({})];
  test.send(a, 'a', 4 * MAX_REQUESTS_PER_TURN);
  test.send(b, 'b', 3 * MAX_REQUESTS_PER_TURN);
  const expected = ['a', 'b', 'a', 'b', 'a'].flatMap((name) => Array<string>(MAX_REQUESTS_PER_TURN).fill(name));
  assert.deepEqual(test.turn(), expected);
  assert.equal(test.turn(), undefined);
});

test('a connection whose tenant has others that wait comes behind them', () => {
  const test = new TurnsInTest();
  test.costMs = 1;
  const a = test.requests.of({});
  test.send(a, 'early', 2 * MAX_REQUESTS_PER_TURN + 1);
  test.turn();
  assert.equal(test.send(a, 'late', 1), 0);
  assert.deepEqual(test.turn(), ['early', 'late']);
});

test('ends the slice of a turn after 1 ms, and continues with the next tenant', () => {
  const test = new TurnsInTest();
  test.costMs = 0.1;
  const [a, b] = [test.requests.of({}), test.requests.of({})];
  test.send(a, 'a', 3 * MAX_REQUESTS_PER_TURN);
  test.send(b, 'b', 2 * MAX_REQUESTS_PER_TURN);
  const turns = Array.from({ length: 4 }, () => [...new Set(test.turn())].join());
  assert.deepEqual(turns, ['a', 'b', 'a', '']);
});

test('counts all requests that a connection begins in its turn', () => {
  const test = new TurnsInTest();
  test.costMs = 1;
  const a = test.requests.of({});
  let parts = 3;
  const many = test.connection('many', () => {
    a.take(a.left);
    parts -= 1;
    if (parts > 0) a.wait(many);
  });
  assert.ok(a.tryTake(many));
  a.take(a.left);
  a.wait(many);
  a.wait(many);
  assert.equal(test.send(a, 'one', 1), 0);
  const turns = Array.from({ length: 5 }, () => test.turn());
  assert.deepEqual(turns, [['many'], ['one', 'many'], ['many'], undefined, undefined]);
});

test('every connection that waits has its turn exactly once, whatever other tenants send', () => {
  const arrivals = fc.array(fc.tuple(fc.nat(3), fc.nat(40)), { maxLength: 30 });
  fc.assert(
    fc.property(arrivals, fc.constantFrom(0, 0.05, 2), (sent, costMs) => {
      const test = new TurnsInTest();
      test.costMs = costMs;
      const tenants = Array.from({ length: 4 }, () => test.requests.of({}));
      const waiting = [0, 0, 0, 0];
      for (const [index, count] of sent) {
        const tenant = tenants[index] as TenantTurns;
        waiting[index] = (waiting[index] ?? 0) + count - test.send(tenant, String(index), count);
        if (count % 3 === 0) test.turn();
      }
      while (test.turn() !== undefined);
      const served = waiting.map((_, index) => test.served.filter((name) => name === String(index)).length);
      assert.deepEqual(served, waiting);
    }),
  );
});
