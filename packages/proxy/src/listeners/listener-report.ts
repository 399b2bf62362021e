import type { ListenerReport, Route } from '@weir/model/data-plane';
import type { ListenerState } from './opening.ts';

export type Said = Pick<ListenerReport, 'bound' | 'listening' | 'error'>;

const SILENT: Said = { bound: false, listening: false, error: null };
const BOUND: Said = { ...SILENT, bound: true };
const LISTENING: Said = { ...BOUND, listening: true };

/** What is said of a listener in this state; `isStillClosing`: some worker may not have closed it yet. */
export function saidOf(
  state: ListenerState | undefined,
  { isStillClosing }: { readonly isStillClosing: boolean },
): Said {
  switch (state?.kind) {
    case 'open': {
      const { isConfirmed, listening } = state.opening;
      if (!isConfirmed) return SILENT;
      return listening.size > 0 ? LISTENING : BOUND;
    }
    case 'held':
      return isStillClosing ? LISTENING : BOUND;
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
      const said = saidFor(route);
      const known = before[reports.length];
      if (known !== undefined && isSameReport(known, route, said)) reports.push(known);
      else {
        const { bound, listening, error } = said;
        reports.push({ id: route.listener.id, service: route.service.uid, bound, listening, error });
        isSame = false;
      }
    }
    if (!isSame || reports.length !== before.length) this.#last = reports;
    return this.#last;
  }
}

function isSameReport(known: ListenerReport, { listener, service }: Route, said: Said): boolean {
  return (
    known.id === listener.id &&
    known.service === service.uid &&
    known.bound === said.bound &&
    known.listening === said.listening &&
    known.error === said.error
  );
}
