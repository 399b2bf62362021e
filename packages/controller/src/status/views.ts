import { type Fleet, type ServiceView, serviceViewsFor } from '@weir/model';

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
