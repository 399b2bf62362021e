import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Rule } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { ruleEventsFor } from '../../src/rules/rule-events.ts';
import { policyWith, startRuleFleet } from '../fixtures/rule-fleet.ts';

const NOTIFY: Rule = {
  name: 'budget',
  metric: 'trafficPerMonth',
  above: 1_000_000,
  forMs: 0,
  action: 'Notify',
  throttleTo: null,
  durationMs: null,
};
const THROTTLE: Rule = { ...NOTIFY, action: 'Throttle', throttleTo: 40_000 };
const SUSPEND: Rule = { ...NOTIFY, action: 'Suspend', durationMs: 120_000 };

/** Two minutes are 1.2 MB, and one minute is 0.6 MB. */
const LOAD = { bitsPerSecond: 80_000 };
const IDLE = { bitsPerSecond: 0 };

const tenMinutesBeforeJuly = (): ManualClock => new ManualClock(Date.UTC(2026, 5, 30, 23, 50));

describe('a rule of trafficPerMonth', () => {
  test('with Notify says once that the budget is used up, and that the month is over', async (context) => {
    const fleet = await startRuleFleet(context, [NOTIFY], { clock: tenMinutesBeforeJuly() });
    const notes = (): string[] =>
      fleet.notices.map((notice) => ruleEventsFor(notice, fleet.source.snapshot())[0]?.note ?? '');
    await fleet.pass(90, LOAD);
    assert.deepEqual(notes(), []);
    await fleet.pass(120, LOAD);
    assert.equal(notes().length, 1);
    assert.match(
      notes()[0] ?? '',
      /^rule "budget" of TenantPolicy "shops": tenant "shop" has 1\.0\d MB this month, above 1 MB; action Throttle or Suspend would begin now$/,
    );
    assert.deepEqual(
      [(await fleet.tenant())?.limits, await fleet.suspensions()],
      [{ outBitsPerSecond: 1_000_000 }, []],
      'Notify changes nothing for clients',
    );
    await fleet.pass(420, IDLE);
    assert.deepEqual(fleet.kinds(), ['begin', 'expired']);
    assert.match(notes()[1] ?? '', /^rule "budget" .* would end now, because its time is over$/);
  });

  test('with Throttle limits both directions until the end of the month, and again when the next budget is used up', async (context) => {
    const fleet = await startRuleFleet(context, [THROTTLE], { clock: tenMinutesBeforeJuly() });
    await fleet.pass(150, LOAD);
    assert.deepEqual((await fleet.tenant())?.limits, { inBitsPerSecond: 40_000, outBitsPerSecond: 40_000 });
    assert.match(
      fleet.condition('Degraded') ?? '',
      /rule "budget" of TenantPolicy "shops" throttles: inBitsPerSecond and outBitsPerSecond of tenant "shop" are limited to 40 kbit\/s until 2026-07-01T00:00:00Z, because of 1\.0\d MB this month, above 1 MB/,
    );
    await fleet.pass(420, IDLE);
    assert.equal(
      (await fleet.tenant())?.limits.inBitsPerSecond,
      40_000,
      'an idle tenant stays throttled in this month',
    );
    await fleet.pass(60, IDLE);
    assert.deepEqual((await fleet.tenant())?.limits, { outBitsPerSecond: 1_000_000 });
    assert.equal(fleet.condition('Degraded'), undefined);
    await fleet.pass(90, LOAD);
    assert.deepEqual(fleet.kinds(), ['begin', 'expired'], 'the bytes of June do not count in July');
    await fleet.pass(60, LOAD);
    assert.deepEqual(fleet.kinds(), ['begin', 'expired', 'begin']);
    assert.match(fleet.condition('Degraded') ?? '', /until 2026-08-01T00:00:00Z/);
  });

  test('with Suspend suspends the tenant once a month', async (context) => {
    const fleet = await startRuleFleet(context, [SUSPEND], { clock: tenMinutesBeforeJuly() });
    await fleet.pass(150, LOAD);
    const [suspension] = await fleet.suspensions();
    assert.match(suspension?.rule ?? '', /^budget: 1\.0\d MB this month, above 1 MB$/);
    assert.match(
      fleet.condition('Suspended') ?? '',
      /rule "budget" of TenantPolicy "shops" suspends tenant "shop" until 2026-06-30T23:5\d:\d\dZ, because of 1\.0\d MB this month, above 1 MB/,
    );
    await fleet.pass(150, IDLE);
    await fleet.pass(150, LOAD);
    assert.deepEqual([await fleet.suspensions(), fleet.kinds()], [[], ['begin', 'expired']]);
    await fleet.pass(180, IDLE);
    await fleet.pass(150, LOAD);
    assert.equal((await fleet.suspensions()).length, 1, 'July has a budget of its own');
  });

  test('goes on in the next controller, and with a raised budget ends at once', async (context) => {
    const first = await startRuleFleet(context, [THROTTLE], { clock: tenMinutesBeforeJuly() });
    await first.pass(150, LOAD);
    await first.close();
    const second = await startRuleFleet(context, [THROTTLE], first);
    await second.pass(30, IDLE);
    assert.deepEqual([(await second.tenant())?.limits.inBitsPerSecond, second.kinds()], [40_000, []]);
    second.source.set({ policies: [policyWith({ ...THROTTLE, above: 2_000_000 })] });
    await second.pass(30, IDLE);
    assert.equal((await second.tenant())?.limits.inBitsPerSecond, undefined);
  });

  test('counts usage that a proxy reports late, and does not act before', async (context) => {
    const fleet = await startRuleFleet(context, [SUSPEND], { clock: tenMinutesBeforeJuly() });
    await fleet.pass(30, LOAD);
    await fleet.pass(200, { ...LOAD, isSilent: true });
    assert.deepEqual(await fleet.suspensions(), []);
    await fleet.pass(10, IDLE);
    assert.equal((await fleet.suspensions()).length, 1);
  });
});
