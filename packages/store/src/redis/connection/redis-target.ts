import { formatHostPort, redactUrl, type Secret } from '@weir/runtime';
import { StoreError } from '../../errors.ts';
import { parseRedisUrl, REDIS_URL_FORMAT, type RedisTopology } from './redis-url.ts';

export interface RedisCredentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** The location of a Redis and the credentials, parsed from `RedisAccess`. */
export interface RedisTarget extends RedisCredentials {
  readonly topology: RedisTopology;
  readonly sentinel: RedisCredentials;
  readonly db: number;
  readonly tls: boolean;
  /** The path of a PEM file with the trusted CAs; undefined for the CAs that Node.js trusts. */
  readonly ca: string | undefined;
  /** The location without the password, for messages. */
  readonly displayName: string;
}

/** A mistake in a `RedisAccess`. `reason` completes a sentence that begins with the field and its value. */
export interface RedisAccessMistake {
  readonly field: keyof RedisAccess;
  /** The wrong value, without secrets; undefined if the field is not set. */
  readonly redactedValue: string | undefined;
  readonly reason: string;
  readonly allowed: string;
}

export type RedisTargetResult =
  | { readonly kind: 'target'; readonly target: RedisTarget }
  | { readonly kind: 'mistake'; readonly mistake: RedisAccessMistake };

/** Parses a `RedisAccess`: combines the credentials with the URL and checks that they do not contradict each other. Pure. */
export function parseRedisTarget(access: RedisAccess): RedisTargetResult {
  const text = (typeof access.url === 'string' ? access.url : access.url.reveal()).trim();
  const parsed = parseRedisUrl(text);
  if (parsed.kind === 'invalid') {
    const mistake = {
      field: 'url',
      redactedValue: JSON.stringify(redactUrl(text)),
      reason: parsed.reason,
      allowed: REDIS_URL_FORMAT,
    };
    return { kind: 'mistake', mistake: mistake as RedisAccessMistake };
  }
  const { topology, db, tls, ...urlCredentials } = parsed.url;
  const { username = urlCredentials.username, password, sentinelUsername, sentinelPassword, ca } = access;
  const target: RedisTarget = {
    topology,
    username,
    password: password?.reveal() ?? urlCredentials.password,
    sentinel: { username: sentinelUsername, password: sentinelPassword?.reveal() },
    db,
    tls,
    ca,
    displayName: displayNameFor(topology),
  };
  const mistake = findContradiction(access, target, urlCredentials);
  return mistake === undefined ? { kind: 'target', target } : { kind: 'mistake', mistake };
}

/** Parses a `RedisAccess`; throws `StoreError` REFUSED for a mistake, without passwords in the message. */
export function targetFor(access: RedisAccess): RedisTarget {
  const result = parseRedisTarget(access);
  if (result.kind === 'target') return result.target;
  const { field, redactedValue, reason, allowed } = result.mistake;
  const subject = redactedValue === undefined ? FIELD_NAMES[field] : `${FIELD_NAMES[field]} ${redactedValue}`;
  throw new StoreError('REFUSED', `the Redis ${subject} ${reason}; use ${allowed}`);
}

const FIELD_NAMES: Readonly<Record<keyof RedisAccess, string>> = {
  url: 'URL',
  username: 'user',
  password: 'password',
  sentinelUsername: 'user for the sentinels',
  sentinelPassword: 'password for the sentinels',
  ca: 'CA file',
};

/** Returns a mistake if settings contradict each other or the URL, otherwise undefined. */
function findContradiction(
  access: RedisAccess,
  target: RedisTarget,
  urlCredentials: RedisCredentials,
): RedisAccessMistake | undefined {
  const { username, password, sentinelUsername, sentinelPassword, ca } = access;
  const oneOfBoth = 'only one of the two settings';
  if (isDifferent(username, urlCredentials.username)) {
    // Does not print a name without a password, because the name may be a password whose colon is missing.
    const user = urlCredentials.password === undefined ? 'user' : `user "${urlCredentials.username}"`;
    const reason = `is not the ${user} of the Redis URL`;
    return { field: 'username', redactedValue: JSON.stringify(username), reason, allowed: oneOfBoth };
  }
  if (isDifferent(password?.reveal(), urlCredentials.password)) {
    return {
      field: 'password',
      redactedValue: '[redacted]',
      reason: 'is not the password in the Redis URL',
      allowed: oneOfBoth,
    };
  }
  const unset = { redactedValue: undefined, reason: 'is not set' };
  if (username !== undefined && target.password === undefined) {
    return { field: 'password', ...unset, allowed: `the password of the user ${username}` };
  }
  if (urlCredentials.username !== undefined && target.password === undefined) {
    const allowed = 'the password of the user in the Redis URL, or write ":" before the password in the URL';
    return { field: 'password', ...unset, allowed };
  }
  if (ca !== undefined && !target.tls) {
    const reason = 'has no effect, because the Redis URL does not begin with rediss';
    return { field: 'ca', redactedValue: JSON.stringify(ca), reason, allowed: 'a CA file only with TLS' };
  }
  const withoutSentinels = {
    reason: 'has no effect, because the Redis URL does not name sentinels',
    allowed: 'this setting only with redis-sentinel://',
  };
  if (sentinelUsername !== undefined) {
    const redactedValue = JSON.stringify(sentinelUsername);
    if (target.topology.kind !== 'sentinel') return { field: 'sentinelUsername', redactedValue, ...withoutSentinels };
    if (sentinelPassword === undefined) {
      return { field: 'sentinelPassword', ...unset, allowed: `the password of the user ${sentinelUsername}` };
    }
  }
  if (sentinelPassword !== undefined && target.topology.kind !== 'sentinel') {
    return { field: 'sentinelPassword', redactedValue: '[redacted]', ...withoutSentinels };
  }
  return undefined;
}

function isDifferent(setting: string | undefined, inUrl: string | undefined): boolean {
  return setting !== undefined && inUrl !== undefined && setting !== inUrl;
}

function displayNameFor(topology: RedisTopology): string {
  switch (topology.kind) {
    case 'single':
      return formatHostPort(topology.at);
    case 'sentinel':
      return `${topology.primary} of the sentinels ${topology.sentinels.map(formatHostPort).join(',')}`;
    case 'cluster':
      return `the cluster with the seeds ${topology.seeds.map(formatHostPort).join(',')}`;
  }
}

/** The location of a Redis and the credentials, as the user configures them. */
export interface RedisAccess {
  /** A URL in one of the formats of `REDIS_URL_FORMAT`. */
  readonly url: Secret | string;
  /** The user name. Must equal the user name in the URL, if the URL has a user name. */
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  /** The user name for the sentinels. Sentinels do not share the users of the Redis servers. */
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: Secret | undefined;
  /** The path of a PEM file with the CAs to trust instead of Node's default CAs. Read for each connection. Requires TLS. */
  readonly ca?: string | undefined;
}
