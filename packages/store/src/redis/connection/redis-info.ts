import { StoreError } from '../../errors.ts';
import type { RedisTopology } from './redis-url.ts';

const MIN_REDIS_MAJOR_VERSION = 7;

/** Returns the value of a field in the reply to INFO, or undefined if the reply does not have the field. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
}

/**
 * Throws if the reply to INFO shows that the server cannot serve Weir. Throws REFUSED for a wrong version or eviction policy. Throws AWAY
 * if the server is loading, is a replica, or refuses writes because it has no replica. `where` names the server in messages.
 */
export function checkRequirements(info: string, where: string, topology: RedisTopology['kind']): void {
  if (infoField(info, 'loading') === '1') throw new StoreError('AWAY', `Redis at ${where} is still loading its data`);
  const version = infoField(info, 'redis_version');
  if (version === undefined || Number.parseInt(version, 10) < MIN_REDIS_MAJOR_VERSION) {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} is version ${version ?? 'unknown'}; Weir needs ${MIN_REDIS_MAJOR_VERSION}.0 or newer`,
    );
  }
  const policy = infoField(info, 'maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} has maxmemory-policy ${policy}, which silently deletes data of Weir; set the policy to noeviction`,
    );
  }
  if (infoField(info, 'role') === 'slave') {
    const advice = topology === 'single' ? '; point the Redis URL at the primary' : '; waiting for the failover';
    throw new StoreError('AWAY', `Redis at ${where} is a replica${advice}`);
  }
  // INFO has this field only if min-replicas-to-write is set. With 0 good replicas, Redis refuses every write.
  if (infoField(info, 'min_slaves_good_slaves') === '0') {
    const reason = 'has no connected replica and therefore refuses writes (min-replicas-to-write)';
    throw new StoreError('AWAY', `Redis at ${where} ${reason}`);
  }
}
