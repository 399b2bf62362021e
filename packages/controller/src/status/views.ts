import { isDeepStrictEqual } from 'node:util';
import { type ServiceView, withExhausted } from '@weir/model';

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
    const told = this.#toldOf.get(view) ?? withExhausted(view, this.#exhausted.get(view.tenant ?? ''));
    this.#toldOf.set(view, told);
    return told;
  }
}
