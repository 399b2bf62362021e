import type { Facts } from '../facts.ts';
import { type CheckResult, error, notChecked, ok, REDIS_UNAVAILABLE, warning } from '../finding.ts';

const MIN_REDIS_MAJOR = 7;

/** Also stands for a Redis that does not answer. */
export function redisReachable({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') {
    return redis.cause === 'failed' ? error(`not checked: ${redis.message}`) : notChecked(redis);
  }
  const { role, isLoading } = redis.value;
  if (role === 'replica') return error('is a replica, which takes no writes; point the Redis URL at the primary');
  if (isLoading) return warning('is still loading its data; Weir waits for it');
  return ok('answers, as a primary');
}

export function redisVersion({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { version } = redis.value;
  if (version !== undefined && Number.parseInt(version, 10) >= MIN_REDIS_MAJOR)
    return ok(`${version} is ${MIN_REDIS_MAJOR}.0 or later`);
  return error(
    `is version ${version ?? 'unknown'}; Weir needs ${MIN_REDIS_MAJOR}.0 or later and refuses to start with this one`,
  );
}

export function redisEviction({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  switch (redis.value.evictionPolicy) {
    case 'noeviction':
      return ok('maxmemory-policy is noeviction');
    case undefined:
      return warning('does not say its maxmemory-policy; make sure that it is noeviction');
    default:
      return error(
        `has maxmemory-policy ${redis.value.evictionPolicy}, which silently drops what Weir has stored; set it to noeviction`,
      );
  }
}

const APPENDONLY_HINT = 'set appendonly yes';

export function redisPersistence({ redis }: Facts): CheckResult {
  if (redis.kind === 'unknown') return notChecked(REDIS_UNAVAILABLE);
  const { appendOnly, snapshots, isFailingToPersist } = redis.value;
  if (isFailingToPersist) return error('could not write to its disk the last time; look at the disk and at its log');
  if (appendOnly) return ok('appendonly is yes: what was counted survives a restart');
  if (snapshots === true) {
    return warning(
      `writes snapshots only, so a restart brings back an older state, and usage counted since is lost; ${APPENDONLY_HINT}`,
    );
  }
  const unseen = snapshots === undefined ? ', and does not let us see whether it writes snapshots' : ', nor snapshots';
  return warning(
    `keeps no log${unseen}, so a restart may lose series and the last minutes of usage; ${APPENDONLY_HINT}`,
  );
}
