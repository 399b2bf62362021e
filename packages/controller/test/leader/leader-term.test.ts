import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaderTerm } from '../../src/leader/leadership.ts';

test('a store that is away while the proxies are listened to does not make everything be read again, another term does', async (context) => {
  const done: string[] = [];
  let isAway = true;
  const term = new LeaderTerm({
    leader: { isLeader: true },
    isClaimed: () => true,
    claim: async () => void done.push('claim'),
    readSource: async () => void done.push('read'),
    async waitForProxies() {
      if (isAway) throw new Error('the store is away');
      done.push('listen');
    },
  });
  await assert.rejects(term.begin(context.signal), /away/);
  isAway = false;
  await term.begin(context.signal);
  assert.deepEqual(done.splice(0), ['claim', 'read', 'claim', 'listen']);
  await term.begin(context.signal);
  assert.deepEqual(done, [], 'all was done in this term');
  term.end();
  await term.begin(context.signal);
  assert.deepEqual(done, ['claim', 'read', 'listen']);
});
