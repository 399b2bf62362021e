import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EMPTY_TABLE, minuteOf, type Rule, UNRESTRICTED_POLICY, ZERO_COUNTERS } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { ruleEventsFor } from '../../src/rules/rule-events.ts';
import { suspensionNameFor } from '../../src/rules/rule-suspension.ts';
import { readTenants } from '../../src/rules/tenant-readings.ts';
import { policyWith, startRuleFleet } from '../fixtures/rule-fleet.ts';

const THROTTLE: Rule = {
  name: 'egress',
  metric: 'outBitsPerSecond',
  above: 80_000,
  forMs: 20_000,
  action: 'Throttle',
  throttleTo: 70_000,
  durationMs: null,
};
const SUSPEND: Rule = { ...THROTTLE, name: 'stop', action: 'Suspend', throttleTo: null, durationMs: 120_000 };

describe('a rule with action Throttle', () => {
  test('lowers the limit in the table until the rate was low for a minute', async (context) => {
    const fleet = await startRuleFleet(context, [THROTTLE]);
    await fleet.pass(15, { bitsPerSecond: 120_000 });
    assert.equal((await fleet.tenant())?.limits.outBitsPerSecond, 1_000_000);
    await fleet.pass(25, { bitsPerSecond: 120_000 });
    const throttled = await fleet.tenant();
    assert.deepEqual(
      [throttled?.limits.outBitsPerSecond, throttled?.policyLimits?.outBitsPerSecond],
      [70_000, 1_000_000],
    );
    assert.deepEqual(
      throttled?.rules?.map(({ rule, phase, until }) => [rule, phase, until]),
      [['egress', 'acting', null]],
    );
    await fleet.pass(90, { bitsPerSecond: 68_000 });
    assert.equal((await fleet.tenant())?.limits.outBitsPerSecond, 70_000, 'holds while clients use 68 kbit/s of 80');
    await fleet.pass(90, { bitsPerSecond: 8_000 });
    assert.deepEqual(
      [(await fleet.tenant())?.limits.outBitsPerSecond, (await fleet.tenant())?.rules],
      [1_000_000, undefined],
    );
    assert.deepEqual(fleet.kinds(), ['begin', 'calm']);
  });

  test('does not act while the ledger lacks the usage of a proxy', async (context) => {
    const fleet = await startRuleFleet(context, [THROTTLE]);
    for (let round = 0; round < 4; round += 1) {
      await fleet.pass(15, { bitsPerSecond: 120_000 });
      await fleet.pass(10, { bitsPerSecond: 120_000, isSilent: true });
    }
    assert.deepEqual(fleet.kinds(), []);
    await fleet.pass(40, { bitsPerSecond: 120_000 });
    assert.deepEqual(fleet.kinds(), ['begin']);
  });

  test('goes on in the next controller, and ends when the policy changes', async (context) => {
    const first = await startRuleFleet(context, [THROTTLE]);
    await first.pass(45, { bitsPerSecond: 120_000 });
    await first.close();
    const second = await startRuleFleet(context, [THROTTLE], first);
    assert.equal((await second.tenant())?.limits.outBitsPerSecond, 70_000);
    await second.pass(10, { bitsPerSecond: 120_000 });
    assert.deepEqual([(await second.tenant())?.limits.outBitsPerSecond, second.kinds()], [70_000, []]);
    second.source.set({ policies: [policyWith({ ...THROTTLE, throttleTo: 50_000 })] });
    await second.pass(10, { bitsPerSecond: 8_000 });
    assert.equal((await second.tenant())?.limits.outBitsPerSecond, 1_000_000);
  });
});

describe('a rule with action Suspend', () => {
  test('waits again for the whole time after its threshold was raised', async (context) => {
    const rule = { ...SUSPEND, forMs: 60_000 };
    const fleet = await startRuleFleet(context, [rule]);
    await fleet.pass(35, { bitsPerSecond: 90_000 });
    await fleet.pass(25, { bitsPerSecond: 200_000 });
    fleet.source.set({ policies: [policyWith({ ...rule, above: 100_000 })] });
    await fleet.pass(25, { bitsPerSecond: 200_000 });
    assert.deepEqual(await fleet.suspensions(), [], 'the rate was above the new threshold for 45 s');
    await fleet.pass(60, { bitsPerSecond: 200_000 });
    assert.equal((await fleet.suspensions()).length, 1);
  });

  test('has a Suspension whose name no other tenant can take', () => {
    const name = suspensionNameFor('shop.eu', 'stop');
    const imitation = name.split('.')[1] ?? '';
    assert.match(imitation, /^shop-eu-[0-9a-f]{10}$/);
    assert.notEqual(suspensionNameFor(imitation, 'stop'), name);
    assert.equal(suspensionNameFor('shop-eu', 'stop'), 'rule.shop-eu.stop');
  });

  test('suspends the tenant for the duration, and names rule and figures', async (context) => {
    const fleet = await startRuleFleet(context, [SUSPEND]);
    await fleet.pass(40, { bitsPerSecond: 120_000 });
    const [suspension] = await fleet.suspensions();
    assert.deepEqual(suspension?.target, { kind: 'tenant', tenant: 'shop' });
    assert.match(suspension?.rule ?? '', /^stop: 120 kbit\/s out for 20s, above 80 kbit\/s$/);
    assert.match(suspension?.message ?? '', /^rule "stop" of TenantPolicy "shops" suspends tenant "shop" until \d{4}-/);
    await fleet.pass(130, { bitsPerSecond: 0 });
    assert.deepEqual(
      [await fleet.suspensions(), (await fleet.tenant())?.rules, fleet.kinds()],
      [[], undefined, ['begin', 'expired']],
    );
  });

  test('does not suspend again after a user ended the Suspension, until the rate was low once', async (context) => {
    const fleet = await startRuleFleet(context, [SUSPEND]);
    await fleet.pass(40, { bitsPerSecond: 120_000 });
    const [suspension] = await fleet.suspensions();
    await fleet.store.suspensions.remove(suspension?.uid ?? '');
    await fleet.pass(120, { bitsPerSecond: 120_000 });
    assert.deepEqual([await fleet.suspensions(), fleet.kinds()], [[], ['begin', 'released']]);
    await fleet.pass(30, { bitsPerSecond: 8_000 });
    await fleet.pass(60, { bitsPerSecond: 120_000 });
    assert.deepEqual([(await fleet.suspensions()).length, fleet.kinds()], [1, ['begin', 'released', 'begin']]);
  });
});

test('a rule with action Notify says when another action would begin and end, at the policy and in the namespaces', async (context) => {
  const fleet = await startRuleFleet(context, [{ ...THROTTLE, action: 'Notify', throttleTo: null }]);
  await fleet.pass(45, { bitsPerSecond: 120_000 });
  assert.equal((await fleet.tenant())?.limits.outBitsPerSecond, 1_000_000);
  await fleet.pass(90, { bitsPerSecond: 0 });
  const events = fleet.notices.map((notice) => ruleEventsFor(notice, fleet.source.snapshot()));
  assert.deepEqual(
    events.map((each) => each.map(({ namespace, regarding, reason }) => [namespace, regarding.kind, reason])),
    [
      [
        ['default', 'TenantPolicy', 'RuleNotifies'],
        ['shop', 'Namespace', 'RuleNotifies'],
      ],
      [
        ['default', 'TenantPolicy', 'RuleEnded'],
        ['shop', 'Namespace', 'RuleEnded'],
      ],
    ],
  );
  assert.match(
    events[0]?.[0]?.note ?? '',
    /^rule "egress" of TenantPolicy "shops": tenant "shop" has 120 kbit\/s out for 20s, above 80 kbit\/s; action Throttle or Suspend would begin now$/,
  );
  assert.match(events[1]?.[0]?.note ?? '', /would end now, because the rate is below 64 kbit\/s$/);
});

test('reads a rate from the series of the tenant, and not from the points of each Service', async () => {
  const clock = new ManualClock();
  const { usage, heartbeats } = new MemoryStore({ clock });
  const counters = { ...ZERO_COUNTERS, sentBytes: 900 };
  const minute = minuteOf(clock.now());
  await usage.seed({ months: [], bases: [] });
  const slots = ['uid-1', 'uid-2'].map((service) => {
    return { service, tenant: 'shop', namespace: 'shop', name: service, points: [{ minute, counters }] };
  });
  await usage.flush({ node: 'a', life: 1, slots });
  usage.rows = () => assert.fail('reads the points of each Service');
  const { limits, grants } = UNRESTRICTED_POLICY;
  const tenant = { name: 'shop', policy: null, namespaces: ['shop'], limits, grants, rules: [THROTTLE] };
  const { signal } = new AbortController();
  const readings = await readTenants([tenant], { table: EMPTY_TABLE, store: { usage, heartbeats }, clock, signal });
  const read = readings.get('shop')?.ledger.minutes;
  assert.deepEqual([read?.get(minute - 1)?.sentBytes, read?.get(minute)?.sentBytes], [0, 1_800]);
});
