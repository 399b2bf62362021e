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

test('user and password stand in the URL or beside it, or one here and one there', () => {
  const whole = targetOf({ WEIR_REDIS_URL: 'redis://weir:p%40ss@h' });
  const apart = { WEIR_REDIS_USERNAME: 'weir', WEIR_REDIS_PASSWORD: 'p@ss\n' };
  for (const env of [
    { WEIR_REDIS_URL: 'redis://h', ...apart },
    { WEIR_REDIS_URL: 'redis://weir@h', WEIR_REDIS_PASSWORD: 'p@ss' },
    { WEIR_REDIS_URL: 'redis://:p%40ss@h', WEIR_REDIS_USERNAME: 'weir' },
    { WEIR_REDIS_URL: 'redis://weir:p%40ss@h', ...apart },
  ]) {
    assert.deepEqual(targetOf(env), whole);
  }
});

test('two users, two passwords, a user without one and a CA without TLS are told by variable, without a password', () => {
  const url = { WEIR_REDIS_URL: 'redis://weir:hunter2@h' };
  refused(
    { ...url, WEIR_REDIS_USERNAME: 'other' },
    'WEIR_REDIS_USERNAME is "other", which is not the user "weir" of the Redis URL; use one of the two places',
  );
  refused(
    { ...url, WEIR_REDIS_PASSWORD: 'hunter3' },
    'WEIR_REDIS_PASSWORD is [redacted], which is not the password in the Redis URL; use one of the two places',
  );
  refused(
    { WEIR_REDIS_URL: 'redis://h', WEIR_REDIS_USERNAME: 'weir' },
    'WEIR_REDIS_PASSWORD is not set; use the password of the user weir',
  );
  refused(
    { ...url, WEIR_REDIS_CA: '/ca.crt' },
    'WEIR_REDIS_CA is "/ca.crt", which is of no use with a Redis URL that is not rediss://; use it with TLS only',
  );
  refused(
    { WEIR_REDIS_URL: 'redis://weir:hunter2@h/zero' },
    'WEIR_REDIS_URL is "redis://weir:[redacted]@h/zero", which has a path that is not the number of a database; use ' +
      'redis://[USER:PASSWORD@]HOST[:PORT][/DB], redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]#PRIMARY or ' +
      'redis-cluster://[USER:PASSWORD@]HOST[:PORT],…; with rediss for TLS (percent-encode special characters)',
  );
  refused(
    { WEIR_REDIS_URL: 'redis-sentinel://hunter2:x,h' },
    'WEIR_REDIS_URL is "redis-sentinel://[redacted]", which names something as a host that is none; use ' +
      'redis://[USER:PASSWORD@]HOST[:PORT][/DB], redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]#PRIMARY or ' +
      'redis-cluster://[USER:PASSWORD@]HOST[:PORT],…; with rediss for TLS (percent-encode special characters)',
  );
  const nowhere = 'which is of no use with a Redis URL that is not redis-sentinel://; use it with sentinels only';
  refused(
    { ...url, WEIR_REDIS_SENTINEL_PASSWORD: 'hunter3' },
    `WEIR_REDIS_SENTINEL_PASSWORD is [redacted], ${nowhere}`,
  );
  refused({ ...url, WEIR_REDIS_SENTINEL_USERNAME: 'x' }, `WEIR_REDIS_SENTINEL_USERNAME is "x", ${nowhere}`);
  refused(
    { WEIR_REDIS_URL: 'redis-sentinel://h#weir', WEIR_REDIS_SENTINEL_USERNAME: 'x' },
    'WEIR_REDIS_SENTINEL_PASSWORD is not set; use the password of the user x',
  );
});

test('a name alone in the URL, which may be the password, is never shown, and is of no use without a password', () => {
  const url = { WEIR_REDIS_URL: 'redis://hunter2@h' };
  refused(
    { ...url, WEIR_REDIS_USERNAME: 'weir', WEIR_REDIS_PASSWORD: 'x' },
    'WEIR_REDIS_USERNAME is "weir", which is not the user of the Redis URL; use one of the two places',
  );
  refused(
    url,
    'WEIR_REDIS_PASSWORD is not set; use the password of the user in the Redis URL, or write ":" before what is the password there',
  );
});

test('a command takes its URL before the one of the environment, and the rest from there', () => {
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
