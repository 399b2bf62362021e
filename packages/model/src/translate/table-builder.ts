import { isJsonEqual } from '../compare.ts';
import { isRecordOf, type RuleRecord, withThrottles } from '../rules/rule.ts';
import type { Snapshot } from '../snapshot.ts';
import { type Entry, type TenantEntry, tenantId } from '../table/entry.ts';
import { apply, type Change, EMPTY_TABLE, type RoutingTable } from '../table/table.ts';
import type { Quota } from './allocate/quota.ts';
import type { ServiceRegistry } from './service-registry.ts';
import type { Tenancy, Tenant } from './tenancy.ts';

/** The table entries of one source (a Service, a tenant, all nodes), before and after a change. */
export interface EntryReplacement {
  readonly before: readonly Entry[];
  readonly after: readonly Entry[];
}

/** Applies small changes to a routing table. An entry whose content did not change stays the same object. */
export class TableBuilder {
  #table: RoutingTable = EMPTY_TABLE;

  /** The routing table, the same object until an entry changes. */
  get table(): RoutingTable {
    return this.#table;
  }

  /**
   * Applies all replacements together, because an entry id may move from one source to another. Throws if two entries have the same id.
   */
  replace(replacements: readonly EntryReplacement[]): void {
    const replaced = new Map<string, Entry>();
    for (const { before } of replacements) for (const entry of before) replaced.set(entry.id, entry);
    const current = new Map<string, Entry>();
    for (const { after } of replacements) {
      for (const entry of after) {
        const isDuplicate = current.has(entry.id) || (!replaced.has(entry.id) && this.#table.entries.has(entry.id));
        if (isDuplicate) throw new Error(`two entries of the table have the id ${entry.id}`);
        current.set(entry.id, entry);
      }
    }
    const changed = [...current.values()].filter((entry) => !isJsonEqual(replaced.get(entry.id), entry));
    const deleted = [...replaced.keys()].filter((id) => !current.has(id));
    if (changed.length === 0 && deleted.length === 0) return;
    this.#table = apply(this.#table, [
      ...deleted.map((id): Change => ({ kind: 'delete', id })),
      ...changed.map((entry): Change => ({ kind: 'put', entry })),
    ]);
  }
}

/**
 * Holds the table entries of tenants. A tenant of a TenantPolicy always has an entry. A tenant of the default policy has an entry only
 * while it has Services.
 */
export class TenantEntryTracker {
  readonly #entries = new Map<string, TenantEntry>();

  /** Computes the entries of the tenants in `changed`, or of all tenants. Returns the old and the new entries. */
  update(
    changed: ReadonlySet<string> | 'all',
    {
      tenancy,
      quota,
      services,
      ruleRecords,
    }: {
      readonly tenancy: Tenancy;
      readonly quota: Quota;
      readonly services: ServiceRegistry;
      readonly ruleRecords: Snapshot['ruleRecords'];
    },
  ): EntryReplacement[] {
    const names = changed === 'all' ? new Set([...this.#entries.keys(), ...tenancy.tenants.keys()]) : changed;
    return [...names].map((name) => {
      const before = this.#entries.get(name);
      const tenant = tenancy.tenants.get(name);
      const hasEntry = tenant !== undefined && (tenant.policy !== null || services.ofTenant(name).size > 0);
      if (!hasEntry) {
        this.#entries.delete(name);
        return { before: before === undefined ? [] : [before], after: [] };
      }
      const { policy, namespaces } = tenant;
      const used = quota.usageOf(name);
      const limits = limitsFor(tenant, ruleRecords?.get(name) ?? []);
      const entry: TenantEntry = { kind: 'tenant', id: tenantId(name), name, policy, namespaces, ...limits, used };
      this.#entries.set(name, entry);
      return { before: before === undefined ? [] : [before], after: [entry] };
    });
  }
}

/** Returns the limits that apply to a tenant, and what rules do to it. Ignores records of rules that the policy does not have any more. */
function limitsFor(
  { limits, rules = [] }: Tenant,
  all: readonly RuleRecord[],
): Pick<TenantEntry, 'limits' | 'policyLimits' | 'rules'> {
  const records = all.filter((record) => rules.some((rule) => isRecordOf(record, rule)));
  if (records.length === 0) return { limits };
  const throttled = withThrottles(limits, records);
  return { limits: throttled, ...(throttled !== limits && { policyLimits: limits }), rules: records };
}
