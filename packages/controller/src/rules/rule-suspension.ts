import { createHash, randomUUID } from 'node:crypto';
import { type RuleRecord, ruleFiguresText, type Suspension, suspendMessage, type Tenant } from '@weir/model';

/**
 * Returns the suspension of a tenant by a rule. Its origin is the store, so that it is in force at once, even while the API server is
 * unreachable; in a cluster, the controller then creates the Suspension object.
 */
export function suspensionFor(record: RuleRecord, tenant: Tenant): Suspension {
  return {
    uid: `rule-${randomUUID()}`,
    name: suspensionNameFor(tenant.name, record.rule),
    target: { kind: 'tenant', tenant: tenant.name },
    message: suspendMessage(record, tenant),
    until: record.until,
    reason: 'SuspendedByRule',
    origin: { kind: 'store' },
    createdAt: record.since,
    rule: `${record.rule}: ${ruleFiguresText(record)}`,
  };
}

/**
 * Returns the name of the Suspension of a rule. The name of a tenant that cannot be part of an object's name is changed and gets a hash. A
 * name that ends like a hash gets a hash too, so that no tenant can take the name of another tenant's Suspension.
 */
export function suspensionNameFor(tenant: string, rule: string): string {
  const isName = /^[a-z0-9-]+$/.test(tenant) && !/-[0-9a-f]{10}$/.test(tenant);
  const hash = createHash('sha256').update(tenant).digest('hex').slice(0, 10);
  const text = isName ? tenant : `${tenant.toLowerCase().replace(/[^a-z0-9]+/g, '-')}-${hash}`;
  return `rule.${text}.${rule}`;
}
