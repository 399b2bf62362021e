import { isDeepStrictEqual } from 'node:util';
import { type ServiceView, withTrafficExhausted } from '@weir/model';

/** Views with what their tenants have used up: the same objects, and the same list, as long as they say the same. */
export class ReportedViews {
  #views: readonly ServiceView[] = [];
  #exhausted: ReadonlyMap<string, string> = new Map();
  #reported: readonly ServiceView[] = [];
  #reportedByView = new WeakMap<ServiceView, ServiceView>();

  withExhaustedMessages(views: readonly ServiceView[], exhausted: ReadonlyMap<string, string>): readonly ServiceView[] {
    const isSameMessages = isDeepStrictEqual(exhausted, this.#exhausted);
    if (views === this.#views && isSameMessages) return this.#reported;
    if (!isSameMessages) this.#reportedByView = new WeakMap();
    this.#views = views;
    this.#exhausted = exhausted;
    this.#reported = exhausted.size === 0 ? views : views.map((view) => this.#report(view));
    return this.#reported;
  }

  #report(view: ServiceView): ServiceView {
    const told = this.#reportedByView.get(view) ?? withTrafficExhausted(view, this.#exhausted.get(view.tenant ?? ''));
    this.#reportedByView.set(view, told);
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
  update(list: readonly ServiceView[]): ReadonlySet<string> {
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
