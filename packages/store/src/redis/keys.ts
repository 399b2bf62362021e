import type { UsagePeriod } from '@weir/model/data-plane';

/** All Redis keys of a fleet. They share one hash tag, so that they are in one slot of a Redis Cluster and a script may use several. */
export interface Keys {
  /** Hash: entry id → encoded entry, without the private key of a certificate. */
  readonly table: string;
  /** Hash: entry id of a certificate → digest and sealed private key, separated by a space. */
  readonly keys: string;
  /**
   * Hash: `epoch`, `revision`, `id`, `complete` (the last revision at which the table was complete), `leader`, and for trimming the
   * `bytes` of the changes since the revision `mark`.
   */
  readonly meta: string;
  /** Stream: `<revision>-0` → id, predecessor, epoch, complete, changed-at, then pairs of entry id and encoded entry ('' if deleted). */
  readonly changes: string;
  /** Hash: node → number of its last incarnation. */
  readonly lives: string;
  /** Sorted set: `<incarnation>:<node>` by time of the last heartbeat in milliseconds. */
  readonly proxies: string;
  /** Hash with a time to live: `state` (JSON), `root`, `digests` (JSON) and `chunk:<index>` of the listener reports. */
  proxy(node: string, life: number): string;
  readonly usage: UsageKeys;
  /** Hash: uid → encoded suspension. */
  readonly cutoffs: string;
  /** Set: uids that were removed while the list was incomplete. */
  readonly cutoffsRemoved: string;
  /** Hash: `sequence`, random `id` of the last change, `complete`. */
  readonly cutoffMeta: string;
  /** Stream: `<sequence>-0`. Its entries only wake watchers. */
  readonly cutoffChanges: string;
}

export interface UsageKeys {
  /** Exists if the ledger is seeded; a wipe removes it. */
  readonly open: string;
  /** Hash: node → highest folded incarnation. */
  readonly folded: string;
  /** Hash: service uid → `<namespace>/<name>`. */
  readonly names: string;
  /** Sets: all tenants, nodes and months that ever had usage. */
  readonly tenants: string;
  readonly nodes: string;
  readonly months: string;
  /** Hash: `<incarnation>/<service>/<tenant>:<counter>` → last seen cumulative value. */
  bases(node: string): string;
  /** Hash: `<service>:<counter>` → usage in the period. */
  sum(tenant: string, period: UsagePeriod): string;
}

/** Returns the keys of a fleet; `fleet` matches `FLEET_NAME_FORMAT`. */
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

/** The Redis user of each kind of process. */
export type RedisUser = 'weir-controller' | 'weir-proxy' | 'weir-console';
const ACL_COMMANDS = '+@read +@write +@scripting +@transaction +@connection -@dangerous +info +time';

/**
 * Returns the permissions of each Redis user as rules of `ACL SETUSER` (Redis 7), which follow `on` and a password. The documentation,
 * the chart and the tests use these rules.
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
