import type { UsagePeriod } from '@weir/model/data-plane';

// Every key of a fleet. One hash tag, so that all are in one slot of a Redis Cluster and a script may touch several.
export interface Keys {
  /** Hash: entry id → encoded entry, of a certificate without its private key. */
  readonly table: string;
  /** Hash: id of a certificate → digest and sealed private key, with a space between. */
  readonly keys: string;
  /**
   * Hash: `epoch`, `revision`, `id`, `complete` (the last revision at which the table was whole), `leader`; `bytes` of the changes since
   * the revision `mark`, by which they are trimmed.
   */
  readonly meta: string;
  /** Stream: `<revision>-0` → id, predecessor, epoch, complete, then entry id and encoded entry ('' = deleted) in turn. */
  readonly changes: string;
  /** Hash: node → number of its last life. */
  readonly lives: string;
  /** Sorted set: `<life>:<node>` by time of the last heartbeat. */
  readonly proxies: string;
  /** Hash with a time to live: `state`, `listeners` (both JSON), `digest` of the listeners. */
  proxy(node: string, life: number): string;
  readonly usage: UsageKeys;
  /** Hash: uid → encoded cut-off. */
  readonly cutoffs: string;
  /** Set: uids removed while not complete. */
  readonly cutoffsRemoved: string;
  /** Hash: `sequence`, random `id` of the last change, `complete`. */
  readonly cutoffMeta: string;
  /** Stream: `<sequence>-0`; it only wakes. */
  readonly cutoffChanges: string;
}

export interface UsageKeys {
  /** Exists: seeded. It is what a wipe takes away. */
  readonly open: string;
  /** Hash: node → this life and all lower ones are refused. */
  readonly folded: string;
  /** Hash: service uid → `<namespace>/<name>`. */
  readonly names: string;
  /** Sets: whoever ever had usage. */
  readonly tenants: string;
  readonly nodes: string;
  readonly months: string;
  /** Hash: `<life>/<service>/<tenant>:<counter>` → last seen cumulative value. */
  bases(node: string): string;
  /** Hash: `<service>:<counter>` → what was used in the period. */
  sum(tenant: string, period: UsagePeriod): string;
}

export function keysFor(fleet: string): Keys {
  const prefix = `weir:{${fleet}}:`;
  return {
    table: `${prefix}table`,
    keys: `${prefix}keys`,
    meta: `${prefix}meta`,
    changes: `${prefix}changes`,
    lives: `${prefix}lives`,
    proxies: `${prefix}proxies`,
    proxy: (node, life) => `${prefix}proxy:${node}:${life}`,
    usage: {
      open: `${prefix}usage:open`,
      folded: `${prefix}usage:folded`,
      names: `${prefix}usage:names`,
      tenants: `${prefix}usage:tenants`,
      nodes: `${prefix}usage:nodes`,
      months: `${prefix}usage:months`,
      bases: (node) => `${prefix}usage:bases:${node}`,
      sum: (tenant, period) => `${prefix}usage:sum:${tenant}:${period}`,
    },
    cutoffs: `${prefix}cutoffs`,
    cutoffsRemoved: `${prefix}cutoffs-removed`,
    cutoffMeta: `${prefix}cutoff-meta`,
    cutoffChanges: `${prefix}cutoff-changes`,
  };
}

/** The user of Redis that each kind of process may have to itself. */
export type RedisUser = 'weir-controller' | 'weir-proxy' | 'weir-console';
const ACL_COMMANDS = '+@read +@write +@scripting +@transaction +@connection -@dangerous +info +time';

/**
 * The rights of each user, as rules of `ACL SETUSER` (Redis 7): the same for the manual, for the chart and for whoever tests them. To be
 * preceded by `on` and a password.
 */
export function redisUsersFor(fleet: string): Readonly<Record<RedisUser, string>> {
  const all = (names: string, mode: '' | '%R' = ''): string =>
    names
      .split(' ')
      .map((name) => `${mode}~weir:{${fleet}}:${name}`)
      .join(' ');
  return {
    'weir-controller': `${ACL_COMMANDS} ${all('*')}`,
    'weir-proxy': `${ACL_COMMANDS} ${all('meta table keys changes cutoff*', '%R')} ${all('lives proxies proxy:* usage:*')}`,
    'weir-console': `${ACL_COMMANDS} ${all('meta table changes lives proxies proxy:* usage:*', '%R')} ${all('cutoff*')}`,
  };
}
