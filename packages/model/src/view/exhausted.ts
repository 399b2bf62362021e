// A tenant that has used up its month: only the ledger knows, so it is said of what translation and the fleet say of its Services.
import { DEGRADED_REASONS, type DegradedReason } from '../reason.ts';
import type { TenantEntry } from '../table/entry.ts';
import { policyText } from '../translate/tenancy.ts';
import { joinSentences } from '../translate/text.ts';
import type { Condition } from './condition.ts';
import type { ServiceView } from './service-view.ts';

/**
 * What to say to the tenant. Without the bytes of the moment: they would be news, and a write to each of its Services, every few
 * seconds.
 */
export function trafficExhaustedMessage({
  name,
  policy,
  limits,
}: Pick<TenantEntry, 'name' | 'policy' | 'limits'>): string {
  return `tenant "${name}" has used up its trafficPerMonth of ${limits.trafficPerMonth} bytes; it is served on, and the count begins anew with the next month (UTC); ask for a higher limit in ${policyText(policy)}`;
}

/** The view of a Service whose tenant is told `message` says so beside what else is wrong; the gravest is the reason. */
export function withTrafficExhausted(view: ServiceView, message: string | undefined): ServiceView {
  if (message === undefined || view.addresses.length === 0) return view;
  const degraded = view.conditions.find(({ type }) => type === 'Degraded');
  const others = view.conditions.filter((condition) => condition !== degraded);
  return { ...view, conditions: [...others, mergeDegraded(degraded, message)] };
}

function mergeDegraded(before: Condition | undefined, message: string): Condition {
  const condition: Condition = { type: 'Degraded', status: 'True', reason: 'OverLimit', message };
  if (before === undefined) return condition;
  const gravity = DEGRADED_REASONS.indexOf(before.reason as DegradedReason) - DEGRADED_REASONS.indexOf('OverLimit');
  const [first, second] = gravity <= 0 ? [before, condition] : [condition, before];
  return { ...first, message: joinSentences([first.message, second.message]) };
}
