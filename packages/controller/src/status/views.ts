import { isDeepStrictEqual } from 'node:util';
import { type Condition, DEGRADED_REASONS, type DegradedReason, type ServiceView, truncate } from '@weir/model';

/** Views with what their tenants have used up: the same objects, and the same list, as long as they say the same. */
export class ToldViews {
  #views: readonly ServiceView[] = [];
  #exhausted: ReadonlyMap<string, string> = new Map();
  #told: readonly ServiceView[] = [];
  #toldOf = new WeakMap<ServiceView, ServiceView>();

  of(views: readonly ServiceView[], exhausted: ReadonlyMap<string, string>): readonly ServiceView[] {
    const isSameMessages = isDeepStrictEqual(exhausted, this.#exhausted);
    if (views === this.#views && isSameMessages) return this.#told;
    if (!isSameMessages) this.#toldOf = new WeakMap();
    this.#views = views;
    this.#exhausted = exhausted;
    this.#told = exhausted.size === 0 ? views : views.map((view) => this.#tellOne(view));
    return this.#told;
  }

  #tellOne(view: ServiceView): ServiceView {
    const told = this.#toldOf.get(view) ?? withExhausted(view, this.#exhausted);
    this.#toldOf.set(view, told);
    return told;
  }
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
