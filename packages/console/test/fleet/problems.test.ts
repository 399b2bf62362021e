import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffProblems } from '../../src/fleet/problems.ts';
import type { FleetProblem } from '../../src/index.ts';

test('reports problems that appeared and problems that were resolved', () => {
  const quota = problem('QuotaExceeded', '2 of 2');
  const port = problem('PortConflict', 'taken');
  assert.deepEqual(diffProblems([], [quota]), { appeared: [quota], resolved: [] });
  assert.deepEqual(diffProblems([quota], [quota, port]), { appeared: [port], resolved: [] });
  assert.deepEqual(diffProblems([quota, port], [port]), { appeared: [], resolved: [quota] });
});

test('reports a problem with a new message as resolved and appeared', () => {
  const before = problem('QuotaExceeded', '2 of 2');
  const after = problem('QuotaExceeded', '3 of 3');
  assert.deepEqual(diffProblems([before], [after]), { appeared: [after], resolved: [before] });
});

function problem(code: string, message: string): FleetProblem {
  return { code, subject: 'Service shop/web', severity: 'error', heals: true, message };
}
