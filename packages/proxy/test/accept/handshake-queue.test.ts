import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HandshakeQueue, MAX_WAITING_HANDSHAKES, type WaitingHandshake } from '../../src/accept/handshake-queue.ts';

/** A queue with a clock that only handshakes advance, and whose turns are run by the test. */
class QueueInTest {
  /** The names of the handshakes that have run, in order. */
  readonly ran: string[] = [];
  readonly #turns = {
    current: 0,
    nowMs: 0,
    runInNext: (task: () => void): void => {
      assert.equal(this.#task, undefined);
      this.#task = task;
    },
    runAtEnd: (): void => assert.fail(),
  };
  readonly queue: HandshakeQueue = new HandshakeQueue({
    now: () => this.#now,
    turns: this.#turns,
  });
  #now = 0;
  #task: (() => void) | undefined;

  handshake(name: string, costMs: number): WaitingHandshake & { hasEnded: boolean } {
    return {
      hasEnded: false,
      step: () => {
        this.ran.push(name);
        this.#now += costMs;
      },
    };
  }

  /** Lets a handshake use up this turn, so that everything that is added now waits for the next turn. */
  useUpTurn(): void {
    this.add({}, 'first', { costMs: 2 });
  }

  add(tenant: object, name: string, { costMs = 0.3, count = 1 } = {}): void {
    for (let each = 0; each < count; each += 1)
      assert.ok(this.queue.tryAdd(tenant, this.handshake(name, costMs), 1_000));
  }

  /** Runs one turn. Returns the names of the handshakes that ran in this turn, or undefined if none waits. */
  turn(): string[] | undefined {
    const task = this.#task;
    if (task === undefined) return undefined;
    this.#task = undefined;
    this.#turns.current += 1;
    const before = this.ran.length;
    task();
    return this.ran.slice(before);
  }
}

const [a, b] = [{}, {}];

test('runs about 2 ms of handshakes in each turn', () => {
  const test = new QueueInTest();
  test.add(a, 'a', { count: 20 });
  assert.equal(test.ran.length, 7);
  assert.deepEqual([test.turn()?.length, test.turn()?.length, test.turn(), test.turn()], [7, 6, undefined, undefined]);
});

test('runs one handshake in a turn even if the handshake takes longer than a turn may take', () => {
  const test = new QueueInTest();
  test.useUpTurn();
  test.add(a, 'a', { count: 3, costMs: 5 });
  assert.deepEqual([test.turn(), test.turn(), test.turn()], [['a'], ['a'], ['a']]);
});

test('a tenant with one handshake does not wait for the thousands of another tenant', () => {
  const test = new QueueInTest();
  test.add(a, 'a', { count: 5_000 });
  test.turn();
  test.add(b, 'b');
  assert.ok(test.turn()?.includes('b'));
});

test('gives tenants the same time, however long their handshakes take', () => {
  const test = new QueueInTest();
  test.useUpTurn();
  test.add(a, 'a', { count: 200, costMs: 5 });
  test.add(b, 'b', { count: 200, costMs: 0.25 });
  while (test.ran.filter((name) => name === 'b').length < 200) test.turn();
  // The 200 handshakes of `b` take 50 ms, as long as 10 handshakes of `a`.
  const ofA = test.ran.filter((name) => name === 'a').length;
  assert.ok(ofA >= 9 && ofA <= 11, `${ofA} handshakes of a`);
});

test('a handshake that has begun goes before the new handshakes of its tenant', () => {
  const test = new QueueInTest();
  test.useUpTurn();
  test.add(a, 'new', { count: 3 });
  test.queue.addBegun(a, test.handshake('begun', 0.3));
  assert.deepEqual(test.turn(), ['begun', 'new', 'new', 'new']);
});

test('skips handshakes that have ended while they waited', () => {
  const test = new QueueInTest();
  test.useUpTurn();
  const ended = test.handshake('ended', 1);
  assert.ok(test.queue.tryAdd(a, ended, 1));
  test.add(a, 'a');
  ended.hasEnded = true;
  assert.deepEqual(test.turn(), ['a']);
});

test('refuses further new handshakes of a tenant with too many, but not those of other tenants or those that have begun', () => {
  const test = new QueueInTest();
  test.useUpTurn();
  for (let each = 0; each < MAX_WAITING_HANDSHAKES; each += 1)
    assert.ok(test.queue.tryAdd(a, test.handshake('a', 1), 500));
  assert.equal(test.queue.tryAdd(a, test.handshake('a', 1), 500), false);
  assert.ok(test.queue.tryAdd(b, test.handshake('b', 1), 500));
  test.queue.addBegun(a, test.handshake('begun', 0));
  test.turn();
  assert.ok(test.queue.tryAdd(a, test.handshake('a', 1), 500));
});

test('refuses further new handshakes of a tenant whose ClientHellos take 16 MiB', () => {
  const test = new QueueInTest();
  test.useUpTurn();
  const hello = 16_384;
  for (let each = 0; each < 1_024; each += 1) assert.ok(test.queue.tryAdd(a, test.handshake('a', 2), hello));
  assert.equal(test.queue.tryAdd(a, test.handshake('a', 2), hello), false);
  test.turn();
  assert.equal(test.queue.tryAdd(a, test.handshake('a', 2), hello), true);
});
