import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kernelWarnings } from '../../src/status/host-warnings.ts';

const GOOD: Readonly<Record<string, string>> = { tcp_migrate_req: '1', tcp_notsent_lowat: '131072' };

test('warns if unsent bytes per connection are not bounded', async () => {
  const about = (warnings: readonly string[]): string[] =>
    warnings.filter((each) => each.includes('tcp_notsent_lowat'));
  assert.equal(about(await warningsFor({ ...GOOD, tcp_notsent_lowat: '4294967295' })).length, 1);
  assert.deepEqual(about(await warningsFor(GOOD)), []);
});

test('does not warn about settings that this kernel lacks', async () => {
  assert.deepEqual(await warningsFor({}), await warningsFor(GOOD));
});

function warningsFor(settings: Readonly<Record<string, string>>): Promise<readonly string[]> {
  return kernelWarnings(async (name) => settings[name]);
}
