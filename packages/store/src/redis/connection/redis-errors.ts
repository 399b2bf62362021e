// Maps errors of Redis, the network and the client to `StoreError`s. Their messages say what failed, where, and what to do. Pure.
import { AssertionError } from 'node:assert';
import { errorMessage } from '@weir/runtime';
import { StoreError } from '../../errors.ts';

/**
 * Maps a thrown value to a `StoreError`, or returns the value if it is a `StoreError`. `where` is HOST:PORT of the server, for the message.
 */
export function storeErrorFor(thrown: unknown, where: string, server: 'Redis' | 'Sentinel' = 'Redis'): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const original = errorMessage(thrown);
  const error = (code: 'AWAY' | 'REFUSED', message: string): StoreError =>
    new StoreError(code, `${server} at ${where} ${message}`);
  const [first = ''] = original.split(' ', 1);
  switch (codeOf(thrown) ?? first) {
    case 'WRONGPASS':
      return error('REFUSED', 'refuses the user name or password; check both in the settings');
    case 'NOAUTH':
      return error('REFUSED', `asks for a password; set the password in ${PASSWORD_SETTINGS[server]}`);
    case 'NOPERM':
      return error('REFUSED', `does not permit a command of Weir (${original}); extend the ACL of the user`);
    case 'OOM':
      return error('REFUSED', 'is out of memory; raise its maxmemory');
    case 'MISCONF':
      return error('REFUSED', `accepts no writes (${original}); check its disk and its log`);
    case 'READONLY':
      return error('AWAY', 'is a replica; point the Redis URL at the primary');
    case 'MOVED':
    case 'ASK':
      return error('REFUSED', 'is one server of a cluster; use redis-cluster:// in the Redis URL');
    case 'LOADING':
      return error('AWAY', 'is still loading its data');
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return error('AWAY', 'cannot be found: the host name does not resolve; check the Redis URL');
    case 'ECONNREFUSED':
      return error(
        'AWAY',
        'refuses the connection: no process listens on the port; start Redis, or check the Redis URL',
      );
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return error('AWAY', `cannot be reached (${original}); check the Redis URL and the network`);
  }
  if (/ACL failure in script|executing the script can't/.test(original)) {
    return error('REFUSED', `does not permit a command of Weir (${original}); extend the ACL of the user`);
  }
  if (/without any password configured|no password is set/.test(original)) {
    return error('REFUSED', 'has no password configured; remove the password from the settings');
  }
  if (/DB index is out of range/.test(original))
    return error('REFUSED', 'does not have the database; check the number at the end of the Redis URL');
  if (/Unknown RESP type|Protocol error/.test(original) || CLIENT_PARSE_FAILURE.test(original)) {
    return error('REFUSED', 'does not speak the Redis protocol; check host, port and TLS in the Redis URL');
  }
  if (/certificate|self.signed|altnames/i.test(original)) {
    return error('REFUSED', `has a certificate that cannot be verified (${original})`);
  }
  if (/Connection is closed|isn't writeable|ECONNRESET|EPIPE|max retries per request|aborted/i.test(original)) {
    return error('AWAY', 'closed the connection');
  }
  if (/Command timed out/.test(original)) return error('AWAY', 'has not responded in time');
  // An error reply of Redis begins with a word in capitals. A retry would get the same reply, unless the error is transient.
  const isRefused = /^[A-Z]+$/.test(first) && !TRANSIENT_ERRORS.has(first);
  return error(isRefused ? 'REFUSED' : 'AWAY', `failed: ${original}`);
}

const PASSWORD_SETTINGS = {
  Redis: 'WEIR_REDIS_PASSWORD, or redis://:PASSWORD@HOST:PORT',
  Sentinel: 'WEIR_REDIS_SENTINEL_PASSWORD',
} as const;

/**
 * Reports whether an error reply means that another server now has the fleet's keys or accepts the writes. UNBLOCKED ends a blocking
 * command when its server becomes a replica.
 */
export function isServerReplaced(thrown: unknown): boolean {
  return /^(?:MOVED|ASK|READONLY|UNBLOCKED) /.test(errorMessage(thrown));
}

/** Reports whether the ACL denied a command outside of a script. */
export function isPermissionDenied(thrown: unknown): boolean {
  return errorMessage(thrown).startsWith('NOPERM');
}

/** Matches the message of an error that ioredis throws while parsing a reply. */
const CLIENT_PARSE_FAILURE = /Please report this\.$/;

/**
 * Reports whether an error is a bug of Weir. A bug must not count as an outage of Redis, because an outage is retried forever and the bug
 * would stay hidden.
 */
export function isProgrammingError(thrown: unknown): boolean {
  const isBug = PROGRAMMING_ERRORS.some((ErrorClass) => thrown instanceof ErrorClass);
  return isBug && !CLIENT_PARSE_FAILURE.test(errorMessage(thrown));
}

const PROGRAMMING_ERRORS = [RangeError, TypeError, ReferenceError, SyntaxError, AssertionError] as const;

/** Codes of error replies for temporary states of the server. */
const TRANSIENT_ERRORS: ReadonlySet<string> = new Set([
  'BUSY',
  'CLUSTERDOWN',
  'MASTERDOWN',
  'NOREPLICAS',
  'TRYAGAIN',
  'UNBLOCKED',
]);

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
}
