import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfig, Secret } from '@weir/runtime';
import { spawnProcess } from '@weir/testkit';
import { SECRET_SETTINGS, secretAccessFor, validateSecretSettings } from '../../src/config/secret-settings.ts';
import { MAIN_PATH } from '../fixtures/controller-process.ts';

const SECRET = 'x'.repeat(32);

test('reads no Secrets by default', () => {
  const config = parseConfig(SECRET_SETTINGS, {});
  assert.deepEqual(secretAccessFor(config), { kind: 'none' });
  assert.deepEqual(validateSecretSettings(config), []);
});

test('reads the Secrets of each named namespace, or of all namespaces', () => {
  const env = {
    WEIR_SECRET_ACCESS: 'namespaces',
    WEIR_SECRET_NAMESPACES: 'shop, blog,shop',
    WEIR_FLEET_SECRET: SECRET,
  };
  const config = parseConfig(SECRET_SETTINGS, env);
  assert.deepEqual(validateSecretSettings(config), []);
  assert.deepEqual(secretAccessFor(config), { kind: 'namespaces', namespaces: ['shop', 'blog'] });
  assert.deepEqual(config.fleetSecret, new Secret(SECRET));
  const all = parseConfig(SECRET_SETTINGS, { WEIR_SECRET_ACCESS: 'cluster', WEIR_FLEET_SECRET: SECRET });
  assert.deepEqual([secretAccessFor(all), validateSecretSettings(all)], [{ kind: 'cluster' }, []]);
});

test('refuses a short fleet secret without showing it', () => {
  assert.throws(
    () => parseConfig(SECRET_SETTINGS, { WEIR_FLEET_SECRET: 'x'.repeat(31), WEIR_SECRET_NAMESPACES: 'A' }),
    ({ message }: Error) => {
      assert.match(
        message,
        /^WEIR_SECRET_NAMESPACES is "A"; use .*\nWEIR_FLEET_SECRET is \[redacted\]; use a secret of at least 32/,
      );
      return !message.includes('xxx');
    },
  );
});

const WRONG: readonly (readonly [settings: Readonly<Record<string, string>>, message: RegExp])[] = [
  [
    { WEIR_SECRET_ACCESS: 'namespaces' },
    /: invalid configuration:\n {2}WEIR_SECRET_NAMESPACES is not set; use a list of the namespaces whose.*; required with WEIR_SECRET_ACCESS=namespaces\n {2}WEIR_FLEET_SECRET is not set; use a secret of.*; required with WEIR_SECRET_ACCESS=namespaces\n$/,
  ],
  [
    { WEIR_SECRET_ACCESS: 'cluster', WEIR_SECRET_NAMESPACES: 'shop', WEIR_FLEET_SECRET: SECRET },
    /: WEIR_SECRET_NAMESPACES is "shop"; use this setting only with WEIR_SECRET_ACCESS=namespaces \(WEIR_SECRET_ACCESS is cluster\)\n$/,
  ],
];

for (const [settings, message] of WRONG) {
  test(`the controller does not start with contradicting ${Object.keys(settings).join(', ')}`, async () => {
    await using process = await spawnProcess({
      command: globalThis.process.execPath,
      args: ['--conditions=source', MAIN_PATH],
      env: { ...globalThis.process.env, WEIR_REDIS_URL: 'redis://127.0.0.1:1', ...settings },
      name: 'controller',
      mayExit: true,
    });
    assert.equal((await process.exited).code, 2);
    assert.match(process.output(), message);
    assert.doesNotMatch(process.output(), /xxx/);
  });
}
