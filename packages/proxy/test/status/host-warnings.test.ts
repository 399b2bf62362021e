import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kernelWarnings } from '../../src/status/host-warnings.ts';

const GOOD: Readonly<Record<string, string>> = { tcp_migrate_req: '1', tcp_notsent_lowat: '131072' };

test('what may be unsent of a connection is to be bounded, as the memory for it is shared by all tenants', async () => {
  const about = (advice: readonly string[]): string[] => advice.filter((each) => each.includes('tcp_notsent_lowat'));
  assert.equal(about(await adviceFor({ ...GOOD, tcp_notsent_lowat: '4294967295' })).length, 1);
  assert.deepEqual(about(await adviceFor(GOOD)), []);
});

test('a setting that this kernel does not have is no reason for advice', async () => {
  assert.deepEqual(await adviceFor({}), await adviceFor(GOOD));
});

function adviceFor(settings: Readonly<Record<string, string>>): Promise<readonly string[]> {
  return kernelWarnings(async (name) => settings[name]);
}
