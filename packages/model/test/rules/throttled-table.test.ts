import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  entriesOf,
  NO_ALLOCATIONS,
  NO_NOTICES,
  type Rule,
  type RuleRecord,
  type Snapshot,
  Translator,
  translate,
  withThrottleNotices,
  withThrottles,
} from '@weir/model';
import fc from 'fast-check';
import { namespace, policy, service, snapshotOf, team } from '../fixtures/snapshot.ts';

const RULE: Rule = {
  name: 'egress',
  metric: 'outBitsPerSecond',
  above: 800_000_000,
  forMs: 600_000,
  action: 'Throttle',
  throttleTo: 700_000_000,
  durationMs: null,
};
const RECORD: RuleRecord = {
  rule: 'egress',
  metric: 'outBitsPerSecond',
  above: 800_000_000,
  action: 'Throttle',
  throttleTo: 700_000_000,
  since: 1_800_000_000_000,
  until: null,
  value: 912_345_678,
  forMs: 600_000,
  phase: 'acting',
};

/** Returns a snapshot of the tenants `shop` and `other` of one policy, with records of rules by tenant. */
const snapshotWith = (records: Readonly<Record<string, readonly RuleRecord[]>>): Snapshot => ({
  ...snapshotOf({
    namespaces: [namespace('shop', { team: 'a' }), namespace('other', { team: 'a' })],
    services: [service('shop/web'), service('other/web')],
    policies: [
      policy('teams', {
        namespaceSelector: team('a'),
        limits: { services: 5, outBitsPerSecond: 1_000_000_000 },
        rules: [RULE],
      }),
    ],
  }),
  ruleRecords: new Map(Object.entries(records)),
});

const tenantsIn = (snapshot: Snapshot): object[] => entriesOf(translate(snapshot, NO_ALLOCATIONS).table, 'tenant');

describe('the routing table', () => {
  test('has the lowered limit, the limit of the policy and the record while a rule throttles a tenant', () => {
    const [other, shop] = tenantsIn(snapshotWith({ shop: [RECORD] }));
    assert.deepEqual(shop, {
      kind: 'tenant',
      id: 'tenant/shop',
      name: 'shop',
      policy: 'teams',
      namespaces: ['shop'],
      limits: { services: 5, outBitsPerSecond: 700_000_000 },
      policyLimits: { services: 5, outBitsPerSecond: 1_000_000_000 },
      rules: [RECORD],
      used: { services: 0, ports: 0 },
    });
    assert.deepEqual(other, tenantsIn(snapshotWith({}))[0], 'the other tenant of the policy keeps its limit');
  });

  test('has no throttle of a rule that the policy has changed or removed, or that is over', () => {
    const [, free] = tenantsIn(snapshotWith({}));
    assert.deepEqual(tenantsIn(snapshotWith({ shop: [{ ...RECORD, throttleTo: 5 }] }))[1], free);
    assert.deepEqual(tenantsIn(snapshotWith({ shop: [{ ...RECORD, rule: 'removed' }] }))[1], free);
    assert.deepEqual(tenantsIn(snapshotWith({ shop: [{ ...RECORD, phase: 'over' }] }))[1], {
      ...free,
      rules: [{ ...RECORD, phase: 'over' }],
    });
  });

  test('is the same after a change of records as from the beginning', () => {
    const records = fc.constantFrom(undefined, RECORD, { ...RECORD, phase: 'over' as const });
    const snapshots = fc.array(fc.record({ shop: records, other: records }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(snapshots, (history) => {
        const first = snapshotWith({});
        const translator = new Translator(first.settings, NO_ALLOCATIONS);
        translator.translate(first);
        for (const { shop, other } of history) {
          const ruleRecords = new Map(
            Object.entries({ ...(shop && { shop: [shop] }), ...(other && { other: [other] }) }),
          );
          const snapshot = { ...first, ruleRecords };
          const { table } = translator.translate(snapshot);
          assert.deepEqual([...table.entries].sort(), [...translate(snapshot, NO_ALLOCATIONS).table.entries].sort());
        }
      }),
      { numRuns: 20 },
    );
  });

  test('lets the Services of the tenant show rule, limit, figures and end', () => {
    const { table } = translate(snapshotWith({ shop: [RECORD] }), NO_ALLOCATIONS);
    const notices = [...withThrottleNotices(NO_NOTICES, table).byTenant];
    assert.deepEqual(notices, [
      [
        'shop',
        [
          {
            reason: 'OverLimit',
            message:
              'rule "egress" of TenantPolicy "teams" throttles: outBitsPerSecond of tenant "shop" is limited to 700 Mbit/s until the rate is below 640 Mbit/s out for 10m, because of 912 Mbit/s out for 10m, above 800 Mbit/s',
          },
        ],
      ],
    ]);
  });
});

test('throttles never raise a limit, and limit both directions for the traffic of the month', () => {
  const limits = { inBitsPerSecond: 40, outBitsPerSecond: 100 };
  const traffic = { ...RECORD, metric: 'trafficPerMonth', throttleTo: 50 } as const;
  assert.deepEqual(withThrottles(limits, [traffic, { ...RECORD, throttleTo: 70 }]), {
    inBitsPerSecond: 40,
    outBitsPerSecond: 50,
  });
  assert.deepEqual(withThrottles({}, [traffic]), { inBitsPerSecond: 50, outBitsPerSecond: 50 });
});
