import type { ServiceView } from './service-view.ts';
import { NO_NOTICES, type UsageNotices, withNotices } from './usage-notices.ts';

/**
 * Adds the notices of the ledger to views. Returns the same list and the same view objects until
 * their content changes.
 */
export class ReportedViews {
  #views: readonly ServiceView[] = [];
  #notices = NO_NOTICES;
  #noticesText = textOf(NO_NOTICES);
  #reported: readonly ServiceView[] = [];
  #reportedByView = new WeakMap<ServiceView, ServiceView>();

  withNotices(views: readonly ServiceView[], notices: UsageNotices): readonly ServiceView[] {
    const text = notices === this.#notices ? this.#noticesText : textOf(notices);
    if (views === this.#views && text === this.#noticesText) return this.#reported;
    if (text !== this.#noticesText) this.#reportedByView = new WeakMap();
    this.#views = views;
    this.#notices = notices;
    this.#noticesText = text;
    const isEmpty = notices.byTenant.size === 0 && notices.byService.size === 0;
    this.#reported = isEmpty ? views : views.map((view) => this.#report(view));
    return this.#reported;
  }

  #report(view: ServiceView): ServiceView {
    const reported = this.#reportedByView.get(view) ?? withNotices(view, this.#notices);
    this.#reportedByView.set(view, reported);
    return reported;
  }
}

function textOf({ byTenant, byService }: UsageNotices): string {
  return JSON.stringify([[...byTenant], [...byService]]);
}
