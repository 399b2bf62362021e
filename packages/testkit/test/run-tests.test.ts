import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseArguments } from '../src/test-run/arguments.ts';

describe('the arguments of npm test', () => {
  test('choose the end-to-end tests by their first word alone', () => {
    assert.deepEqual(parseArguments(['e2e']), { suite: 'e2e', filters: [], flags: [] });
    assert.deepEqual(parseArguments(['store', 'e2e']), { suite: 'all', filters: ['store', 'e2e'], flags: [] });
  });

  test('hand flags to node, with their value in either spelling', () => {
    assert.deepEqual(parseArguments(['store', '--test-name-pattern', 'lua', '--test-only', '--test-shard=1/2']), {
      suite: 'all',
      filters: ['store'],
      flags: ['--test-name-pattern=lua', '--test-only', '--test-shard=1/2'],
    });
  });
});
