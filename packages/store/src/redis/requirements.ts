import { StoreError } from '../error.ts';
import type { RedisTopology } from './redis-url.ts';

const MIN_REDIS_MAJOR_VERSION = 7;

/** Throws REFUSED or AWAY unless what `INFO` says is a Redis that Weir can trust its data to. `found`: how we came there. */
export function checkRequirements(info: string, where: string, found: RedisTopology['kind']): void {
  const field = (name: string): string | undefined => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
  if (field('loading') === '1') throw new StoreError('AWAY', `Redis at ${where} is still loading its data`);
  const version = field('redis_version');
  if (version === undefined || Number.parseInt(version, 10) < MIN_REDIS_MAJOR_VERSION) {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} is version ${version ?? 'unknown'}; Weir needs ${MIN_REDIS_MAJOR_VERSION}.0 or newer`,
    );
  }
  const policy = field('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} has maxmemory-policy ${policy}, which silently drops what Weir has stored; set it to noeviction`,
    );
  }
  if (field('role') === 'slave') {
    const advice = found === 'single' ? '; point the Redis URL at the primary' : ', and not yet the primary again';
    throw new StoreError('AWAY', `Redis at ${where} is a replica${advice}`);
  }
  // it is there only with min-replicas-to-write, and at 0 every write is refused
  if (field('min_slaves_good_slaves') === '0') {
    const why = 'has no replica that follows, and takes no writes without (min-replicas-to-write)';
    throw new StoreError('AWAY', `Redis at ${where} ${why}`);
  }
}
