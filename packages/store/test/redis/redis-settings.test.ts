import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfig } from '@weir/runtime';
import { targetFor } from '../../src/redis/connection/redis-target.ts';
import { REDIS_SETTINGS, redisAccessFrom, withRedisAccess } from '../../src/redis/redis-settings.ts';

type Env = Record<string, string>;

function targetOf(env: Env) {
  return targetFor(withRedisAccess(parseConfig(REDIS_SETTINGS, env)).redis);
}

function refused(env: Env, message: string): void {
  assert.throws(
    () => targetOf(env),
    (error: Error) => {
      assert.equal(error.message, message);
      return 'code' in error && error.code === 'CONFIG_INVALID';
    },
  );
}

test('accepts user and password in the URL, in the settings, or in both', () => {
  const expected = targetOf({ WEIR_REDIS_URL: 'redis://weir:p%40ss@h' });
  const settings = { WEIR_REDIS_USERNAME: 'weir', WEIR_REDIS_PASSWORD: 'p@ss\n' };
  for (const env of [
    { WEIR_REDIS_URL: 'redis://h', ...settings },
    { WEIR_REDIS_URL: 'redis://weir@h', WEIR_REDIS_PASSWORD: 'p@ss' },
    { WEIR_REDIS_URL: 'redis://:p%40ss@h', WEIR_REDIS_USERNAME: 'weir' },
    { WEIR_REDIS_URL: 'redis://weir:p%40ss@h', ...settings },
  ]) {
    assert.deepEqual(targetOf(env), expected);
  }
});

test('refuses contradicting users, passwords and CA settings by variable, without printing a password', () => {
  const url = { WEIR_REDIS_URL: 'redis://weir:hunter2@h' };
  refused(
    { ...url, WEIR_REDIS_USERNAME: 'other' },
    'WEIR_REDIS_USERNAME is "other", which is not the user "weir" of the Redis URL; use only one of the two settings',
  );
  refused(
    { ...url, WEIR_REDIS_PASSWORD: 'hunter3' },
    'WEIR_REDIS_PASSWORD is [redacted], which is not the password in the Redis URL; use only one of the two settings',
  );
  refused(
    { WEIR_REDIS_URL: 'redis://h', WEIR_REDIS_USERNAME: 'weir' },
    'WEIR_REDIS_PASSWORD is not set; use the password of the user weir',
  );
  refused(
    { ...url, WEIR_REDIS_CA: '/ca.crt' },
    'WEIR_REDIS_CA is "/ca.crt", which has no effect, because the Redis URL does not begin with rediss; use a CA file only with TLS',
  );
  refused(
    { WEIR_REDIS_URL: 'redis://weir:hunter2@h/zero' },
    'WEIR_REDIS_URL is "redis://weir:[redacted]@h/zero", which has a path that is not the number of a database; use ' +
      'redis://[USER:PASSWORD@]HOST[:PORT][/DB], redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]#PRIMARY or ' +
      'redis-cluster://[USER:PASSWORD@]HOST[:PORT],…; with rediss for TLS (percent-encode special characters)',
  );
  refused(
    { WEIR_REDIS_URL: 'redis-sentinel://hunter2:x,h' },
    'WEIR_REDIS_URL is "redis-sentinel://[redacted]", which has an invalid host; use ' +
      'redis://[USER:PASSWORD@]HOST[:PORT][/DB], redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]#PRIMARY or ' +
      'redis-cluster://[USER:PASSWORD@]HOST[:PORT],…; with rediss for TLS (percent-encode special characters)',
  );
  const withoutSentinels =
    'which has no effect, because the Redis URL does not name sentinels; use this setting only with redis-sentinel://';
  refused(
    { ...url, WEIR_REDIS_SENTINEL_PASSWORD: 'hunter3' },
    `WEIR_REDIS_SENTINEL_PASSWORD is [redacted], ${withoutSentinels}`,
  );
  refused({ ...url, WEIR_REDIS_SENTINEL_USERNAME: 'x' }, `WEIR_REDIS_SENTINEL_USERNAME is "x", ${withoutSentinels}`);
  refused(
    { WEIR_REDIS_URL: 'redis-sentinel://h#weir', WEIR_REDIS_SENTINEL_USERNAME: 'x' },
    'WEIR_REDIS_SENTINEL_PASSWORD is not set; use the password of the user x',
  );
});

test('refuses a user without a password in the URL, and never prints it, because it may be the password', () => {
  const url = { WEIR_REDIS_URL: 'redis://hunter2@h' };
  refused(
    { ...url, WEIR_REDIS_USERNAME: 'weir', WEIR_REDIS_PASSWORD: 'x' },
    'WEIR_REDIS_USERNAME is "weir", which is not the user of the Redis URL; use only one of the two settings',
  );
  refused(
    url,
    'WEIR_REDIS_PASSWORD is not set; use the password of the user in the Redis URL, or write ":" before the password in the URL',
  );
});

test('takes the URL of a command before the environment, and the other settings from the environment', () => {
  const env = { WEIR_REDIS_URL: 'rediss://a', WEIR_REDIS_PASSWORD: 'x', WEIR_REDIS_CA: '/ca.crt' };
  const named = (url?: string) => {
    const access = redisAccessFrom(env, url);
    assert.ok(access !== undefined);
    const { displayName, password, ca } = targetFor(access);
    return { shown: displayName, password, ca };
  };
  assert.deepEqual(named(), { shown: 'a:6379', password: 'x', ca: '/ca.crt' });
  assert.deepEqual(named('rediss://b:1'), { shown: 'b:1', password: 'x', ca: '/ca.crt' });
  assert.equal(redisAccessFrom({ WEIR_REDIS_PASSWORD: 'x' }, undefined), undefined);
});
