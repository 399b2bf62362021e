import { formatHostPort, redactUrl } from '@weir/runtime';
import { StoreError } from '../error.ts';
import type { RedisAccess } from './access.ts';
import { REDIS_URL_FORM, type RedisPlace, readRedisUrl } from './redis-url.ts';

export interface Credentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Where a Redis is, and who we are there. */
export interface RedisTarget extends Credentials {
  readonly place: RedisPlace;
  readonly sentinel: Credentials;
  readonly db: number;
  readonly tls: boolean;
  /** Path of the authorities that are trusted; undefined: those that Node.js trusts. */
  readonly ca: string | undefined;
  /** For people: without the password. */
  readonly shown: string;
}

/** What of an access is wrong; `why` ends a sentence that begins with it. */
export interface AccessMistake {
  readonly of: keyof RedisAccess;
  /** What stands there, as far as it may be shown; undefined: nothing. */
  readonly shown: string | undefined;
  readonly why: string;
  readonly allowed: string;
}

export type TargetReading =
  | { readonly kind: 'target'; readonly target: RedisTarget }
  | { readonly kind: 'mistake'; readonly mistake: AccessMistake };

/** Puts the parts of an access together. Pure. */
export function readTarget(access: RedisAccess): TargetReading {
  const text = (typeof access.url === 'string' ? access.url : access.url.reveal()).trim();
  const reading = readRedisUrl(text);
  if (reading.kind === 'wrong') {
    const mistake = { of: 'url', shown: JSON.stringify(redactUrl(text)), why: reading.why, allowed: REDIS_URL_FORM };
    return { kind: 'mistake', mistake: mistake as AccessMistake };
  }
  const { place, db, tls, ...inUrl } = reading.url;
  const { username = inUrl.username, password, sentinelUsername, sentinelPassword, ca } = access;
  const target: RedisTarget = {
    place,
    username,
    password: password?.reveal() ?? inUrl.password,
    sentinel: { username: sentinelUsername, password: sentinelPassword?.reveal() },
    db,
    tls,
    ca,
    shown: shownAs(place),
  };
  const mistake = contradiction(access, target, inUrl);
  return mistake === undefined ? { kind: 'target', target } : { kind: 'mistake', mistake };
}

/** As `readTarget`; a mistake throws REFUSED, with the password redacted. */
export function targetFor(access: RedisAccess): RedisTarget {
  const reading = readTarget(access);
  if (reading.kind === 'target') return reading.target;
  const { of, shown, why, allowed } = reading.mistake;
  const what = shown === undefined ? NAMES[of] : `${NAMES[of]} ${shown}`;
  throw new StoreError('REFUSED', `the Redis ${what} ${why}; use ${allowed}`);
}

const NAMES: Readonly<Record<keyof RedisAccess, string>> = {
  url: 'URL',
  username: 'user',
  password: 'password',
  sentinelUsername: 'user at the sentinels',
  sentinelPassword: 'password at the sentinels',
  ca: 'authority',
};

/** What does not go together. */
function contradiction(access: RedisAccess, target: RedisTarget, inUrl: Credentials): AccessMistake | undefined {
  const { username, password, sentinelUsername, sentinelPassword, ca } = access;
  const ONE = 'one of the two places';
  if (isOther(username, inUrl.username)) {
    // a name that stands alone may be a password that lost its colon
    const named = inUrl.password === undefined ? 'user' : `user "${inUrl.username}"`;
    const why = `is not the ${named} of the Redis URL`;
    return { of: 'username', shown: JSON.stringify(username), why, allowed: ONE };
  }
  if (isOther(password?.reveal(), inUrl.password)) {
    return { of: 'password', shown: '[redacted]', why: 'is not the password in the Redis URL', allowed: ONE };
  }
  const unset = { shown: undefined, why: 'is not set' };
  if (username !== undefined && target.password === undefined) {
    return { of: 'password', ...unset, allowed: `the password of the user ${username}` };
  }
  if (inUrl.username !== undefined && target.password === undefined) {
    const allowed = 'the password of the user in the Redis URL, or write ":" before what is the password there';
    return { of: 'password', ...unset, allowed };
  }
  if (ca !== undefined && !target.tls) {
    const why = 'is of no use with a Redis URL that is not rediss://';
    return { of: 'ca', shown: JSON.stringify(ca), why, allowed: 'it with TLS only' };
  }
  const nowhere = {
    why: 'is of no use with a Redis URL that is not redis-sentinel://',
    allowed: 'it with sentinels only',
  };
  if (sentinelUsername !== undefined) {
    const shown = JSON.stringify(sentinelUsername);
    if (target.place.kind !== 'sentinel') return { of: 'sentinelUsername', shown, ...nowhere };
    if (sentinelPassword === undefined) {
      return { of: 'sentinelPassword', ...unset, allowed: `the password of the user ${sentinelUsername}` };
    }
  }
  if (sentinelPassword !== undefined && target.place.kind !== 'sentinel') {
    return { of: 'sentinelPassword', shown: '[redacted]', ...nowhere };
  }
  return undefined;
}

function isOther(given: string | undefined, inUrl: string | undefined): boolean {
  return given !== undefined && inUrl !== undefined && given !== inUrl;
}

function shownAs(place: RedisPlace): string {
  switch (place.kind) {
    case 'single':
      return formatHostPort(place.at);
    case 'sentinel':
      return `${place.primary} of the sentinels ${place.sentinels.map(formatHostPort).join(',')}`;
    case 'cluster':
      return `the cluster of ${place.seeds.map(formatHostPort).join(',')}`;
  }
}
