// The settings of a Redis, which all processes and the command line have alike.
import {
  ConfigError,
  type ConfigMistake,
  optional,
  parseConfig,
  path,
  redactUrl,
  Secret,
  type Setting,
  type SettingFormat,
  secret,
  setting,
  text,
} from '@weir/runtime';
import type { RedisAccess } from './connection/redis-target.ts';
import { parseTarget } from './connection/redis-target.ts';
import { REDIS_URL_FORMAT } from './connection/redis-url.ts';

const REDIS_URL_SETTING_FORMAT: SettingFormat<Secret> = {
  allowed: REDIS_URL_FORMAT,
  parse: (raw) => (/^rediss?(?:-sentinel|-cluster)?:\/\/./.test(raw.trim()) ? new Secret(raw.trim()) : undefined),
  redact: (raw) => JSON.stringify(redactUrl(raw.trim())),
};

interface RedisConfig {
  readonly redisUrl: Secret;
  readonly redisUsername: string | undefined;
  readonly redisPassword: Secret | undefined;
  readonly redisSentinelUsername: string | undefined;
  readonly redisSentinelPassword: Secret | undefined;
  readonly redisCa: string | undefined;
}

export const REDIS_SETTINGS: { readonly [Name in keyof RedisConfig]: Setting<RedisConfig[Name]> } = {
  redisUrl: setting('WEIR_REDIS_URL', REDIS_URL_SETTING_FORMAT),
  redisUsername: optional(text('WEIR_REDIS_USERNAME')),
  redisPassword: optional(secret('WEIR_REDIS_PASSWORD')),
  redisSentinelUsername: optional(text('WEIR_REDIS_SENTINEL_USERNAME')),
  redisSentinelPassword: optional(secret('WEIR_REDIS_SENTINEL_PASSWORD')),
  redisCa: optional(path('WEIR_REDIS_CA')),
};

const VARIABLES: Readonly<Record<keyof RedisAccess, string>> = {
  url: REDIS_SETTINGS.redisUrl.variable,
  username: REDIS_SETTINGS.redisUsername.variable,
  password: REDIS_SETTINGS.redisPassword.variable,
  sentinelUsername: REDIS_SETTINGS.redisSentinelUsername.variable,
  sentinelPassword: REDIS_SETTINGS.redisSentinelPassword.variable,
  ca: REDIS_SETTINGS.redisCa.variable,
};

/** A configuration with those settings put together as `redis`. Throws `ConfigError` when they contradict each other. */
export function withRedisAccess<Config extends RedisConfig>(
  config: Config,
): Omit<Config, keyof RedisConfig> & { readonly redis: RedisAccess } {
  const { redisUrl, redisUsername, redisPassword, redisSentinelUsername, redisSentinelPassword, redisCa, ...others } =
    config;
  const redis = accessFor(config);
  const reading = parseTarget(redis);
  if (reading.kind === 'target') return { ...others, redis };
  const { field, redactedValue, reason, allowed } = reading.mistake;
  const mistake: ConfigMistake = {
    variable: VARIABLES[field],
    redactedValue: redactedValue === undefined ? undefined : `${redactedValue}, which ${reason}`,
    allowed,
  };
  throw new ConfigError([mistake]);
}

/**
 * For a command line: what `env` says, with `url` instead of its URL; undefined when neither has one. Whoever uses it is told
 * what of it is wrong, except for a `ConfigError` of single variables.
 */
export function redisAccessFrom(
  env: Readonly<Record<string, string | undefined>>,
  url: string | undefined,
): RedisAccess | undefined {
  const { redisUrl: _redisUrl, ...others } = REDIS_SETTINGS;
  const named = url ?? env[REDIS_SETTINGS.redisUrl.variable];
  if (named === undefined || named === '') return undefined;
  return accessFor({ ...parseConfig(others, env), redisUrl: new Secret(named) });
}

function accessFor(config: RedisConfig): RedisAccess {
  return {
    url: config.redisUrl,
    username: config.redisUsername,
    password: config.redisPassword,
    sentinelUsername: config.redisSentinelUsername,
    sentinelPassword: config.redisSentinelPassword,
    ca: config.redisCa,
  };
}
