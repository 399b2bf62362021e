import { formatHostPort, redactUrl, type Secret } from '@weir/runtime';
import { StoreError } from '../../errors.ts';
import { parseRedisUrl, REDIS_URL_FORMAT, type RedisTopology } from './redis-url.ts';

export interface RedisCredentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Where a Redis is, and who we are there. */
export interface RedisTarget extends RedisCredentials {
  readonly topology: RedisTopology;
  readonly sentinel: RedisCredentials;
  readonly db: number;
  readonly tls: boolean;
  /** Path of the authorities that are trusted; undefined: those that Node.js trusts. */
  readonly ca: string | undefined;
  /** For people: without the password. */
  readonly displayName: string;
}

/** What of an access is wrong; `why` ends a sentence that begins with it. */
export interface RedisAccessMistake {
  readonly field: keyof RedisAccess;
  /** What stands there, as far as it may be shown; undefined: nothing. */
  readonly redactedValue: string | undefined;
  readonly reason: string;
  readonly allowed: string;
}

export type RedisTargetResult =
  | { readonly kind: 'target'; readonly target: RedisTarget }
  | { readonly kind: 'mistake'; readonly mistake: RedisAccessMistake };

/** Puts the parts of an access together. Pure. */
export function parseTarget(access: RedisAccess): RedisTargetResult {
  const text = (typeof access.url === 'string' ? access.url : access.url.reveal()).trim();
  const reading = parseRedisUrl(text);
  if (reading.kind === 'wrong') {
    const mistake = {
      field: 'url',
      redactedValue: JSON.stringify(redactUrl(text)),
      reason: reading.why,
      allowed: REDIS_URL_FORMAT,
    };
    return { kind: 'mistake', mistake: mistake as RedisAccessMistake };
  }
  const { topology, db, tls, ...inUrl } = reading.url;
  const { username = inUrl.username, password, sentinelUsername, sentinelPassword, ca } = access;
  const target: RedisTarget = {
    topology,
    username,
    password: password?.reveal() ?? inUrl.password,
    sentinel: { username: sentinelUsername, password: sentinelPassword?.reveal() },
    db,
    tls,
    ca,
    displayName: displayNameFor(topology),
  };
  const mistake = findContradiction(access, target, inUrl);
  return mistake === undefined ? { kind: 'target', target } : { kind: 'mistake', mistake };
}

/** As `readTarget`; a mistake throws REFUSED, with the password redacted. */
export function targetFor(access: RedisAccess): RedisTarget {
  const reading = parseTarget(access);
  if (reading.kind === 'target') return reading.target;
  const { field, redactedValue, reason, allowed } = reading.mistake;
  const what = redactedValue === undefined ? FIELD_NAMES[field] : `${FIELD_NAMES[field]} ${redactedValue}`;
  throw new StoreError('REFUSED', `the Redis ${what} ${reason}; use ${allowed}`);
}

const FIELD_NAMES: Readonly<Record<keyof RedisAccess, string>> = {
  url: 'URL',
  username: 'user',
  password: 'password',
  sentinelUsername: 'user at the sentinels',
  sentinelPassword: 'password at the sentinels',
  ca: 'authority',
};

/** What does not go together. */
function findContradiction(
  access: RedisAccess,
  target: RedisTarget,
  inUrl: RedisCredentials,
): RedisAccessMistake | undefined {
  const { username, password, sentinelUsername, sentinelPassword, ca } = access;
  const ONE = 'one of the two places';
  if (isDifferent(username, inUrl.username)) {
    // a name that stands alone may be a password that lost its colon
    const named = inUrl.password === undefined ? 'user' : `user "${inUrl.username}"`;
    const reason = `is not the ${named} of the Redis URL`;
    return { field: 'username', redactedValue: JSON.stringify(username), reason, allowed: ONE };
  }
  if (isDifferent(password?.reveal(), inUrl.password)) {
    return {
      field: 'password',
      redactedValue: '[redacted]',
      reason: 'is not the password in the Redis URL',
      allowed: ONE,
    };
  }
  const unset = { redactedValue: undefined, reason: 'is not set' };
  if (username !== undefined && target.password === undefined) {
    return { field: 'password', ...unset, allowed: `the password of the user ${username}` };
  }
  if (inUrl.username !== undefined && target.password === undefined) {
    const allowed = 'the password of the user in the Redis URL, or write ":" before what is the password there';
    return { field: 'password', ...unset, allowed };
  }
  if (ca !== undefined && !target.tls) {
    const reason = 'is of no use with a Redis URL that is not rediss://';
    return { field: 'ca', redactedValue: JSON.stringify(ca), reason, allowed: 'it with TLS only' };
  }
  const nowhere = {
    reason: 'is of no use with a Redis URL that is not redis-sentinel://',
    allowed: 'it with sentinels only',
  };
  if (sentinelUsername !== undefined) {
    const redactedValue = JSON.stringify(sentinelUsername);
    if (target.topology.kind !== 'sentinel') return { field: 'sentinelUsername', redactedValue, ...nowhere };
    if (sentinelPassword === undefined) {
      return { field: 'sentinelPassword', ...unset, allowed: `the password of the user ${sentinelUsername}` };
    }
  }
  if (sentinelPassword !== undefined && target.topology.kind !== 'sentinel') {
    return { field: 'sentinelPassword', redactedValue: '[redacted]', ...nowhere };
  }
  return undefined;
}

function isDifferent(given: string | undefined, inUrl: string | undefined): boolean {
  return given !== undefined && inUrl !== undefined && given !== inUrl;
}

function displayNameFor(place: RedisTopology): string {
  switch (place.kind) {
    case 'single':
      return formatHostPort(place.at);
    case 'sentinel':
      return `${place.primary} of the sentinels ${place.sentinels.map(formatHostPort).join(',')}`;
    case 'cluster':
      return `the cluster of ${place.seeds.map(formatHostPort).join(',')}`;
  }
}

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
