import type { ListenerReport, Route } from '@weir/model';
import type { ListenerState } from './opening.ts';

export type Said = Pick<ListenerReport, 'bound' | 'listening' | 'error'>;

const SILENT: Said = { bound: false, listening: false, error: null };

/** What is said of a listener in this state; `isStillClosing`: some worker may not have closed it yet. */
export function saidOf(
  state: ListenerState | undefined,
  { isStillClosing }: { readonly isStillClosing: boolean },
): Said {
  switch (state?.kind) {
    case 'open': {
      const { isConfirmed, listening } = state.opening;
      return { bound: isConfirmed, listening: isConfirmed && listening.size > 0, error: null };
    }
    case 'held':
      return { ...SILENT, bound: true, listening: isStillClosing };
    case 'failed':
    case 'busy':
      return { ...SILENT, error: state.error };
    case undefined:
      return SILENT;
  }
}

/** What is said of all listeners: the same list, and the same reports, as long as they say the same. */
export class ReportList {
  #last: readonly ListenerReport[] = [];

  renew(routes: Iterable<Route>, saidFor: (route: Route) => Said): readonly ListenerReport[] {
    const before = this.#last;
    const reports: ListenerReport[] = [];
    let isSame = true;
    for (const route of routes) {
      const { bound, listening, error } = saidFor(route);
      const report = { id: route.listener.id, service: route.service.uid, bound, listening, error };
      const known = before[reports.length];
      if (known !== undefined && isSameReport(known, report)) reports.push(known);
      else {
        reports.push(report);
        isSame = false;
      }
    }
    if (!isSame || reports.length !== before.length) this.#last = reports;
    return this.#last;
  }
}

function isSameReport(a: ListenerReport, b: ListenerReport): boolean {
  return (
    a.id === b.id &&
    a.service === b.service &&
    a.bound === b.bound &&
    a.listening === b.listening &&
    a.error === b.error
  );
}
