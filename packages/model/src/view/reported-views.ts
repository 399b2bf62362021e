import { isJsonEqual } from '../compare.ts';
import type { ServiceView } from './service-view.ts';
import { withTrafficExhausted } from './tenant-view.ts';

/**
 * Adds the message about used-up traffic to the views of a tenant's Services. Returns the same list and the same view objects until
 * their content changes.
 */
export class ReportedViews {
  #views: readonly ServiceView[] = [];
  #exhausted: ReadonlyMap<string, string> = new Map();
  #reported: readonly ServiceView[] = [];
  #reportedByView = new WeakMap<ServiceView, ServiceView>();

  /** `exhausted` contains the message for each tenant that has used up its traffic of this month. */
  withExhaustedMessages(views: readonly ServiceView[], exhausted: ReadonlyMap<string, string>): readonly ServiceView[] {
    const hasSameMessages = isJsonEqual([...exhausted], [...this.#exhausted]);
    if (views === this.#views && hasSameMessages) return this.#reported;
    if (!hasSameMessages) this.#reportedByView = new WeakMap();
    this.#views = views;
    this.#exhausted = exhausted;
    this.#reported = exhausted.size === 0 ? views : views.map((view) => this.#report(view));
    return this.#reported;
  }

  #report(view: ServiceView): ServiceView {
    const reported =
      this.#reportedByView.get(view) ?? withTrafficExhausted(view, this.#exhausted.get(view.tenant ?? ''));
    this.#reportedByView.set(view, reported);
    return reported;
  }
}
