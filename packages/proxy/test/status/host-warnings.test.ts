import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kernelWarnings } from '../../src/status/host-warnings.ts';
import { TRANSPORT_KINDS, type TransportKind } from '../../src/transport/choose-transport.ts';

const GOOD: Readonly<Record<string, string>> = {
  'net.ipv4.tcp_migrate_req': '1',
  'net.ipv4.tcp_notsent_lowat': '131072',
  'net.core.somaxconn': '4096',
};

const about = (setting: string, warnings: readonly string[]): string[] =>
  warnings.filter((each) => each.includes(setting));

test('warns if unsent bytes per connection are not bounded, but only with WEIR_TRANSPORT=node', async () => {
  const unbounded = { ...GOOD, 'net.ipv4.tcp_notsent_lowat': '4294967295' };
  assert.equal(about('tcp_notsent_lowat', await warningsFor(unbounded, 'node')).length, 1);
  assert.deepEqual(about('tcp_notsent_lowat', await warningsFor(GOOD, 'node')), []);
  assert.deepEqual(about('tcp_notsent_lowat', await warningsFor(unbounded, 'syscalls')), []);
});

test('warns with every transport if the kernel does not move waiting connections', async () => {
  for (const transport of TRANSPORT_KINDS) {
    const warnings = await warningsFor({ ...GOOD, 'net.ipv4.tcp_migrate_req': '0' }, transport);
    assert.equal(about('tcp_migrate_req', warnings).length, 1);
  }
});

test('warns if the accept queue is shorter than the queue that Weir asks for', async () => {
  assert.equal(about('somaxconn', await warningsFor({ ...GOOD, 'net.core.somaxconn': '128' })).length, 1);
  assert.deepEqual(about('somaxconn', await warningsFor({ ...GOOD, 'net.core.somaxconn': '8192' })), []);
});

test('does not warn about settings that this kernel lacks', async () => {
  assert.deepEqual(await warningsFor({}), await warningsFor(GOOD));
});

function warningsFor(
  settings: Readonly<Record<string, string>>,
  transport: TransportKind = 'node',
): Promise<readonly string[]> {
  return kernelWarnings(transport, async (name) => settings[name]);
}
