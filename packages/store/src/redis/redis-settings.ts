// The settings of the Redis connection. All processes and the command line share them.
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
import { parseRedisTarget } from './connection/redis-target.ts';
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

/**
 * Returns the configuration with one field `redis` in place of all Redis settings. Throws `ConfigError` if the settings contradict each
 * other.
 */
export function withRedisAccess<Config extends RedisConfig>(
  config: Config,
): Omit<Config, keyof RedisConfig> & { readonly redis: RedisAccess } {
  const { redisUrl, redisUsername, redisPassword, redisSentinelUsername, redisSentinelPassword, redisCa, ...rest } =
    config;
  const redis = accessFor(config);
  const result = parseRedisTarget(redis);
  if (result.kind === 'target') return { ...rest, redis };
  const { field, redactedValue, reason, allowed } = result.mistake;
  const mistake: ConfigMistake = {
    variable: VARIABLES[field],
    redactedValue: redactedValue === undefined ? undefined : `${redactedValue}, which ${reason}`,
    allowed,
  };
  throw new ConfigError([mistake]);
}

/**
 * Returns the Redis access for a command: the settings in `env`, except that `url` replaces the URL in `env`. Returns undefined if there is
 * no URL. Throws `ConfigError` for an invalid variable; `openRedisStore` reports contradictions between the settings.
 */
export function redisAccessFrom(
  env: Readonly<Record<string, string | undefined>>,
  url: string | undefined,
): RedisAccess | undefined {
  const { redisUrl: _redisUrl, ...otherSettings } = REDIS_SETTINGS;
  const redisUrl = url ?? env[REDIS_SETTINGS.redisUrl.variable];
  if (redisUrl === undefined || redisUrl === '') return undefined;
  return accessFor({ ...parseConfig(otherSettings, env), redisUrl: new Secret(redisUrl) });
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
