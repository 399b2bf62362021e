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

/** The views of a list by UID, kept up with lists in which few are others than before. */
export class ViewsByUid {
  #list: readonly ServiceView[] = [];
  readonly #byUid = new Map<string, ServiceView>();

  get(uid: string): ServiceView | undefined {
    return this.#byUid.get(uid);
  }

  /** Takes a list, sorted as the one before, and returns the UIDs whose view is another, or gone. The same list costs nothing. */
  take(list: readonly ServiceView[]): ReadonlySet<string> {
    const changed = new Set<string>();
    if (list === this.#list) return changed;
    const before = this.#list;
    this.#list = list;
    const most = Math.min(before.length, list.length);
    let from = 0;
    while (from < most && before[from] === list[from]) from += 1;
    let tail = 0;
    while (tail < most - from && before[before.length - 1 - tail] === list[list.length - 1 - tail]) tail += 1;
    const present = new Set<string>();
    for (const view of list.slice(from, list.length - tail)) {
      present.add(view.uid);
      if (this.#byUid.get(view.uid) === view) continue;
      this.#byUid.set(view.uid, view);
      changed.add(view.uid);
    }
    for (const { uid } of before.slice(from, before.length - tail))
      if (!present.has(uid) && this.#byUid.delete(uid)) changed.add(uid);
    return changed;
  }
}
