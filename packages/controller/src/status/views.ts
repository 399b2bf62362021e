import { type Condition, DEGRADED_REASONS, type DegradedReason, type ServiceView, truncate } from '@weir/model';

/** The view of a Service whose tenant has used up its month says so beside what else is wrong; the gravest is the reason. */
export function withExhausted(view: ServiceView, exhausted: ReadonlyMap<string, string>): ServiceView {
  const message = view.tenant === null ? undefined : exhausted.get(view.tenant);
  if (message === undefined || view.addresses.length === 0) return view;
  const degraded = view.conditions.find(({ type }) => type === 'Degraded');
  const others = view.conditions.filter((condition) => condition !== degraded);
  return { ...view, conditions: [...others, joined(degraded, message)] };
}

function joined(before: Condition | undefined, message: string): Condition {
  const condition: Condition = { type: 'Degraded', status: 'True', reason: 'OverLimit', message };
  if (before === undefined) return condition;
  const gravity = DEGRADED_REASONS.indexOf(before.reason as DegradedReason) - DEGRADED_REASONS.indexOf('OverLimit');
  const [first, second] = gravity <= 0 ? [before, condition] : [condition, before];
  return { ...first, message: truncate(`${first.message}; ${second.message}`) };
}
