import type { Secret } from '@weir/runtime';

/** Where a Redis is, and who we are there, as a person says it. */
export interface RedisAccess {
  /** One of the forms of `REDIS_URL_FORM`. */
  readonly url: Secret | string;
  /** Instead of those of the URL: when both are there they must be the same. */
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  /** Who we are at the sentinels, which know none of the users of Redis. */
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: Secret | undefined;
  /** Path of a PEM file with the authorities that are trusted, and no others; read for each connection. Only with TLS. */
  readonly ca?: string | undefined;
}
