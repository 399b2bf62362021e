import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Session } from '../../src/relay/session.ts';
import { SessionExpirer } from '../../src/relay/session-terminator.ts';
import { TimeoutWheel } from '../../src/relay/timeout-wheel.ts';

test('of many that are due at once the worker ends some per turn; who speaks or ends meanwhile is left alone', async () => {
  const wheel = new TimeoutWheel<Session>(8);
  const expiring = new SessionExpirer(wheel, (thrown) => assert.fail(String(thrown)));
  const expired = new Set<Session>();
  const members = Array.from({ length: 1_000 }, () => silent((member) => expired.add(member)));
  for (const member of members) wheel.add(member);
  expiring.tick();
  assert.equal(expired.size, 200);
  const [speaks, ends] = members.filter((member) => !expired.has(member));
  assert.ok(speaks !== undefined && ends !== undefined);
  speaks.deadline = 3;
  wheel.remove(ends);
  expiring.tick();
  assert.equal(expired.size, 200, 'one that is at it already is not hurried');
  for (let turn = 0; turn < 6; turn += 1) await nextTurn();
  assert.equal(expired.size, 998);
  expiring.tick();
  assert.ok(expired.has(speaks));
  assert.ok(!expired.has(ends));
});

function silent(onExpired: (member: Session) => void): Session & { deadline: number } {
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
