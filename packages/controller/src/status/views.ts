import {
  type Condition,
  DEGRADED_REASONS,
  type DegradedReason,
  type Fleet,
  type ServiceView,
  serviceViewsFor,
  truncate,
} from '@weir/model';

/**
 * The views to publish. While a fleet is not yet heard in full (`settling`), Services that have addresses keep just these: what looks
 * dead may not have been heard yet.
 */
export function publishedViews(fleet: Fleet, { settling }: { readonly settling: boolean }): readonly ServiceView[] {
  const views = serviceViewsFor(fleet);
  if (!settling || !fleet.reachable) return views;
  const frozen = new Map(serviceViewsFor({ ...fleet, reachable: false }).map((view) => [view.uid, view]));
  return views.map((view) => {
    const before = frozen.get(view.uid);
    return before !== undefined && before.addresses.length > 0 ? before : view;
  });
}

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
