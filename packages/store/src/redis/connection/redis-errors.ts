// What Redis or the way to it said, as an error with what, where and what to do. Pure.
import { AssertionError } from 'node:assert';
import { errorMessage } from '@weir/runtime';
import { StoreError } from '../../errors.ts';

/** `where` is host and port. Errors of this store pass unchanged. */
export function storeErrorFor(thrown: unknown, where: string, who: 'Redis' | 'Sentinel' = 'Redis'): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const said = errorMessage(thrown);
  const error = (code: 'AWAY' | 'REFUSED', message: string): StoreError =>
    new StoreError(code, `${who} at ${where} ${message}`);
  const [first = ''] = said.split(' ', 1);
  switch (codeOf(thrown) ?? first) {
    case 'WRONGPASS':
      return error('REFUSED', 'refuses the user name or password; check them in its settings');
    case 'NOAUTH':
      return error('REFUSED', `asks for a password; put it into its settings (${PASSWORD_SETTINGS[who]})`);
    case 'NOPERM':
      return error('REFUSED', `does not permit what Weir does (${said}); extend the ACL of the user`);
    case 'OOM':
      return error('REFUSED', 'is out of memory; raise its maxmemory');
    case 'MISCONF':
      return error('REFUSED', `accepts no writes (${said}); look at its disk and its log`);
    case 'READONLY':
      return error('AWAY', 'is a replica; point the Redis URL at the primary');
    case 'MOVED':
    case 'ASK':
      return error('REFUSED', 'is one server of a cluster; use redis-cluster:// in the Redis URL');
    case 'LOADING':
      return error('AWAY', 'is still loading its data');
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return error('AWAY', 'cannot be found: its name does not resolve; check the Redis URL');
    case 'ECONNREFUSED':
      return error('AWAY', 'is not there: nothing listens; start it, or check the Redis URL');
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return error('AWAY', `cannot be reached (${said}); check the Redis URL and the network`);
  }
  if (/ACL failure in script|executing the script can't/.test(said)) {
    return error('REFUSED', `does not permit what Weir does (${said}); extend the ACL of the user`);
  }
  if (/without any password configured|no password is set/.test(said)) {
    return error('REFUSED', 'knows no password; take it out of its settings');
  }
  if (/DB index is out of range/.test(said))
    return error('REFUSED', 'has no such database; check the end of the Redis URL');
  if (/Unknown RESP type|Protocol error/.test(said) || CLIENT_PARSE_FAILURE.test(said)) {
    return error('REFUSED', 'does not speak the Redis protocol; check host, port and TLS in the Redis URL');
  }
  if (/certificate|self.signed|altnames/i.test(said)) {
    return error('REFUSED', `has a certificate that cannot be verified (${said})`);
  }
  if (/Connection is closed|isn't writeable|ECONNRESET|EPIPE|max retries per request|aborted/i.test(said)) {
    return error('AWAY', 'closed the connection');
  }
  if (/Command timed out/.test(said)) return error('AWAY', 'has not answered in time');
  // what Redis itself says begins with a word in capitals; most of it will be the same when asked again
  const isRefused = /^[A-Z]+$/.test(first) && !TRANSIENT_ERRORS.has(first);
  return error(isRefused ? 'REFUSED' : 'AWAY', `failed: ${said}`);
}

const PASSWORD_SETTINGS = {
  Redis: 'WEIR_REDIS_PASSWORD, or redis://:PASSWORD@HOST:PORT',
  Sentinel: 'WEIR_REDIS_SENTINEL_PASSWORD',
} as const;

/** Whether it says that another server has what is ours, or takes our writes: also to whoever was waiting there. */
export function isServerReplaced(thrown: unknown): boolean {
  return /^(?:MOVED|ASK|READONLY|UNBLOCKED) /.test(errorMessage(thrown));
}

/** Whether an ACL was in the way of a plain command. */
export function isPermissionDenied(thrown: unknown): boolean {
  return errorMessage(thrown).startsWith('NOPERM');
}

/** What the client adds to whatever it throws while it reads an answer. */
const CLIENT_PARSE_FAILURE = /Please report this\.$/;

/** A bug of ours says nothing about Redis: taken for an outage it would be retried for ever, and hidden. */
export function isProgrammingError(thrown: unknown): boolean {
  const isMistake = PROGRAMMING_ERRORS.some((Mistake) => thrown instanceof Mistake);
  return isMistake && !CLIENT_PARSE_FAILURE.test(errorMessage(thrown));
}

const PROGRAMMING_ERRORS = [RangeError, TypeError, ReferenceError, SyntaxError, AssertionError] as const;

/** Redis is in a state that ends by itself. */
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
