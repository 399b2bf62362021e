import { StoreError } from '../error.ts';

const OLDEST = 7;

/** Throws REFUSED or AWAY unless what `INFO` says is a Redis that Weir can trust its data to. */
export function checkRequirements(info: string, where: string): void {
  const field = (name: string): string | undefined => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
  if (field('loading') === '1') throw new StoreError('AWAY', `Redis at ${where} is still loading its data`);
  const version = field('redis_version');
  if (version === undefined || Number.parseInt(version, 10) < OLDEST) {
    throw new StoreError(
      'REFUSED',
      `Redis at ${where} is version ${version ?? 'unknown'}; Weir needs ${OLDEST}.0 or newer`,
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
    throw new StoreError('AWAY', `Redis at ${where} is a replica; point the Redis URL at the primary`);
  }
}
