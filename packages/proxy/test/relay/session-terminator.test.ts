import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Outcome } from '../../src/metering/outcome.ts';
import type { Session } from '../../src/relay/session.ts';
import { SessionExpirer, SessionTerminator } from '../../src/relay/session-terminator.ts';
import { TimeoutWheel } from '../../src/relay/timeout-wheel.ts';

/** How many sessions fit into one turn of the event loop with the clock of these tests. */
const SESSIONS_PER_TURN = 200;

test('a cut-off does not wait behind thousands of drained sessions', async () => {
  const { outcomes, newSession, now } = createSessions();
  const terminator = new SessionTerminator(fail, now);
  const drained = Array.from({ length: 10_000 }, newSession);
  const cutOff = Array.from({ length: 300 }, newSession);
  terminator.terminate(drained, 'drained');
  assert.deepEqual(outcomes(), { drained: SESSIONS_PER_TURN });
  terminator.terminate(cutOff, 'cut-off');
  assert.deepEqual(outcomes(), { drained: SESSIONS_PER_TURN, 'cut-off': SESSIONS_PER_TURN });
  await nextTurn();
  assert.equal(outcomes()['cut-off'], 300);
  while ((outcomes().drained ?? 0) < 10_000) await nextTurn();
});

test('ends the remaining sessions if ending a session throws', () => {
  const { outcomes, newSession, now } = createSessions();
  const thrown: unknown[] = [];
  const terminator = new SessionTerminator((error) => thrown.push(error), now);
  const broken = Object.assign(newSession(), {
    end(): void {
      throw new Error('a defect');
    },
  });
  terminator.terminate([broken, newSession()], 'drained');
  assert.deepEqual([outcomes(), thrown.map(String)], [{ drained: 1 }, ['Error: a defect']]);
});

test('expires sessions in several turns of the event loop, and spares sessions that become active or end meanwhile', async () => {
  const { outcomes, newSession, now } = createSessions();
  const wheel = new TimeoutWheel<Session>(8);
  const expirer = new SessionExpirer(wheel, fail, now);
  const sessions = Array.from({ length: 1_000 }, newSession);
  for (const session of sessions) wheel.add(session);
  expirer.tick();
  assert.equal(outcomes()['idle-timeout'], SESSIONS_PER_TURN);
  const [active, ended] = sessions.filter(({ outcome }) => outcome === undefined);
  assert.ok(active !== undefined && ended !== undefined);
  active.deadline = 3;
  wheel.remove(ended);
  expirer.tick();
  assert.equal(outcomes()['idle-timeout'], SESSIONS_PER_TURN, 'a tick does not speed up a sweep that is under way');
  for (let turn = 0; turn < 6; turn += 1) await nextTurn();
  assert.equal(outcomes()['idle-timeout'], 998);
  expirer.tick();
  assert.equal(active.outcome, 'idle-timeout');
  assert.equal(ended.outcome, undefined);
});

interface TestSession extends Session {
  deadline: number;
  outcome: Outcome | undefined;
}

interface TestSessions {
  /** Returns the number of ended sessions by outcome. */
  outcomes(): Partial<Record<Outcome, number>>;
  newSession(): TestSession;
  /** A clock that advances by 2 ms, the slice of a queue, when `SESSIONS_PER_TURN` sessions have ended. */
  now(): number;
}

function createSessions(): TestSessions {
  const counts: Partial<Record<Outcome, number>> = {};
  let ended = 0;
  const newSession = (): TestSession => ({
    deadline: 1,
    wheelSlot: 0,
    wheelIndex: -1,
    sessionIndex: -1,
    endpointStats: undefined,
    outcome: undefined,
    onEndpointUnavailable: () => undefined,
    onExpired() {
      this.end('idle-timeout');
    },
    end(outcome) {
      this.outcome = outcome;
      counts[outcome] = (counts[outcome] ?? 0) + 1;
      ended += 1;
    },
  });
  return { outcomes: () => ({ ...counts }), newSession, now: () => (ended * 2) / SESSIONS_PER_TURN };
}

function fail(thrown: unknown): void {
  assert.fail(String(thrown));
}
