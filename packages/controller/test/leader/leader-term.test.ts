import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaderTerm } from '../../src/leader/leadership.ts';

test('reads all objects once in a term, even if the store fails while waiting for proxies, and again in the next term', async (context) => {
  const done: string[] = [];
  let isUnreachable = true;
  const term = new LeaderTerm({
    leader: { isLeader: true },
    isClaimed: () => true,
    claim: async () => void done.push('claim'),
    readSource: async () => void done.push('read'),
    async waitForProxies() {
      if (isUnreachable) throw new Error('the store is unreachable');
      done.push('wait');
    },
  });
  await assert.rejects(term.begin(context.signal), /unreachable/);
  isUnreachable = false;
  await term.begin(context.signal);
  assert.deepEqual(done.splice(0), ['claim', 'read', 'claim', 'wait']);
  await term.begin(context.signal);
  assert.deepEqual(done, [], 'the term has begun already');
  term.end();
  await term.begin(context.signal);
  assert.deepEqual(done, ['claim', 'read', 'wait']);
});
