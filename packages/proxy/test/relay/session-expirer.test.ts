import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Session } from '../../src/relay/session.ts';
import { SessionExpirer } from '../../src/relay/session-terminator.ts';
import { TimeoutWheel } from '../../src/relay/timeout-wheel.ts';

test('expires 200 sessions per iteration of the event loop, and spares sessions that become active or end meanwhile', async () => {
  const wheel = new TimeoutWheel<Session>(8);
  const expirer = new SessionExpirer(wheel, (thrown) => assert.fail(String(thrown)));
  const expired = new Set<Session>();
  const sessions = Array.from({ length: 1_000 }, () => idleSession((session) => expired.add(session)));
  for (const session of sessions) wheel.add(session);
  expirer.tick();
  assert.equal(expired.size, 200);
  const [active, ended] = sessions.filter((session) => !expired.has(session));
  assert.ok(active !== undefined && ended !== undefined);
  active.deadline = 3;
  wheel.remove(ended);
  expirer.tick();
  assert.equal(expired.size, 200, 'a tick does not speed up a sweep that is under way');
  for (let iteration = 0; iteration < 6; iteration += 1) await nextIteration();
  assert.equal(expired.size, 998);
  expirer.tick();
  assert.ok(expired.has(active));
  assert.ok(!expired.has(ended));
});

function idleSession(onExpired: (session: Session) => void): Session & { deadline: number } {
  return {
    deadline: 1,
    wheelSlot: 0,
    wheelIndex: -1,
    sessionIndex: -1,
    endpointStats: undefined,
    end: () => undefined,
    onEndpointUnavailable: () => undefined,
    onExpired() {
      onExpired(this);
    },
  };
}
