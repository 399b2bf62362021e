import type { SeriesLength, UsagePeriod } from '@weir/model/data-plane';
import type { LeaseName } from '../contract.ts';

/** All Redis keys of a fleet. The keys share one hash tag, because a script in a Redis Cluster may use only the keys of one slot. */
export interface Keys {
  /** Hash: entry id → encoded entry, without the private key of a certificate. */
  readonly table: string;
  /** Hash: entry id of a certificate → digest and sealed private key, separated by a space. */
  readonly keys: string;
  /**
   * Hash: the position (`epoch`, `revision`, `id`), the `leader` token, and `complete`, the last revision at which the table was complete.
   * For trimming: the revision `mark`, and `bytes`, the size of the changes after that revision.
   */
  readonly meta: string;
  /**
   * Stream with ids `<revision>-0`: id, predecessor, epoch, complete and changed-at, then pairs of entry id and encoded entry ('' if
   * deleted).
   */
  readonly changes: string;
  /** Hash: node → number of the node's last incarnation. */
  readonly lives: string;
  /** Sorted set: `<incarnation>:<node>`, by the time of the last heartbeat in milliseconds. */
  readonly proxies: string;
  /** Hash with a time to live: the heartbeat's `state` (JSON), and its listener reports as `root`, `digests` (JSON) and `chunk:<index>`. */
  proxy(node: string, life: number): string;
  readonly usage: UsageKeys;
  /** Hash: uid → encoded suspension. */
  readonly cutoffs: string;
  /** Hash: uid → sequence of the last change of the suspension: of its put, or of its removal since the list was declared complete. */
  readonly cutoffSequences: string;
  /** Hash: `sequence`, `id` (random, of the last change), and `complete`, the sequence at which the list was last declared complete. */
  readonly cutoffMeta: string;
  /** Stream with ids `<sequence>-0`. Its entries only wake watchers. */
  readonly cutoffChanges: string;
  /** Stream of `suspension` (encoded) and `release` (JSON, or '' if the suspension was made or changed). Its ids are times. */
  readonly cutoffAudit: string;
  /** String: when the last period of registration began, and when any member exchanged leases last, in milliseconds. */
  readonly leaseOpen: string;
  /** Hash: `<incarnation>:<node>` → the time of the member's last exchange in milliseconds, and its sequence. */
  readonly leaseMembers: string;
  /** Hash: `<incarnation>:<node>` → `<held> <demand> <weight> <floor> <used>`. Members that are not in `leaseMembers` do not count. */
  lease(name: LeaseName): string;
}

export interface UsageKeys {
  /** String: exists while the ledger is open. A wipe deletes the key. */
  readonly open: string;
  /** Hash: node → highest folded incarnation; '' → highest incarnation that is refused for unknown nodes (see `forget-nodes`). */
  readonly folded: string;
  /** Set: `<incarnation>/<node>` of each incarnation that has sent a full report since the ledger was opened. */
  readonly reported: string;
  /** Hash: service uid → `<namespace>/<name>`. */
  readonly names: string;
  /** Hash: uid of a Service that has usage but does not exist → since when, in milliseconds. */
  readonly gone: string;
  /** Hash: node that neither exists nor has a proxy → since when, in milliseconds. */
  readonly goneNodes: string;
  /** Sets: all tenants and months that ever had usage, and all nodes that had usage and are not forgotten. */
  readonly tenants: string;
  readonly nodes: string;
  readonly months: string;
  /** Hash: `<incarnation>/<service>/<tenant>:<counter>` → last seen cumulative value. */
  bases(node: string): string;
  /** Hash: `<service>:<counter>` → the tenant's usage in the month. Earlier versions also have sums of minutes, hours and days. */
  sum(tenant: string, period: UsagePeriod): string;
  /** Hash: reason of refusals → its number in the points of series. */
  readonly reasons: string;
  /** Hash: number of a point in the block → the point, as `points.lua` writes it. `service` is '' in the series of the tenant. */
  series(owner: SeriesOwner, length: SeriesLength, block: number): string;
}

export interface SeriesOwner {
  readonly tenant: string;
  /** The uid of a Service; '' for the series of the tenant. */
  readonly service: string;
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
      reported: `${prefix}usage:reported`,
      names: `${prefix}usage:names`,
      gone: `${prefix}usage:gone`,
      goneNodes: `${prefix}usage:gone-nodes`,
      tenants: `${prefix}usage:tenants`,
      nodes: `${prefix}usage:nodes`,
      months: `${prefix}usage:months`,
      bases: (node) => `${prefix}usage:bases:${node}`,
      sum: (tenant, period) => `${prefix}usage:sum:${tenant}:${period}`,
      reasons: `${prefix}usage:reasons`,
      // One letter for the length saves memory, because a Service has about fifty blocks.
      series: ({ tenant, service }, length, block) =>
        `${prefix}usage:series:${tenant}:${service}:${length.charAt(0)}:${block}`,
    },
    cutoffs: `${prefix}cutoffs`,
    cutoffSequences: `${prefix}cutoff-sequences`,
    cutoffMeta: `${prefix}cutoff-meta`,
    cutoffChanges: `${prefix}cutoff-changes`,
    cutoffAudit: `${prefix}cutoff-audit`,
    leaseOpen: `${prefix}lease-open`,
    leaseMembers: `${prefix}lease-members`,
    lease: ({ owner, resource }) =>
      `${prefix}lease:${owner.kind}.${owner.kind === 'tenant' ? owner.name : owner.uid}:${resource}`,
  };
}

/** The Redis user of each kind of process. */
export type RedisUser = 'weir-controller' | 'weir-proxy' | 'weir-console';
/** Excludes SCAN and RANDOMKEY, because they return the names of all keys, also of other fleets. */
const ACL_COMMANDS = '+@read +@write +@scripting +@transaction +@connection -@dangerous -scan -randomkey +info +time';

/**
 * Returns the permissions of each Redis user as rules of `ACL SETUSER` (Redis 7), to be placed after `on` and a password. The
 * documentation, the chart and the tests use these rules.
 */
export function redisUsersFor(fleet: string): Readonly<Record<RedisUser, string>> {
  const all = (names: string, mode: '' | '%R' = ''): string =>
    names
      .split(' ')
      .map((name) => `${mode}~weir:{${fleet}}:${name}`)
      .join(' ');
  return {
    'weir-controller': `${ACL_COMMANDS} ${all('*')}`,
    'weir-proxy': `${ACL_COMMANDS} ${all('meta table keys changes cutoff*', '%R')} ${all('lives proxies proxy:* usage:* lease*')}`,
    'weir-console': `${ACL_COMMANDS} ${all('meta table changes lives proxies proxy:* usage:* lease*', '%R')} ${all('cutoff*')}`,
  };
}
