import type { ListenerReport, Route } from '@weir/model/data-plane';
import { formatHostPort, listenError } from '@weir/runtime';
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import type { ListenerState } from './listener-states.ts';

export type BindResult = Pick<ListenerReport, 'bound' | 'listening' | 'error'>;
const NOT_BOUND: BindResult = { bound: false, listening: false, error: null };
const BOUND: BindResult = { ...NOT_BOUND, bound: true };
const LISTENING: BindResult = { ...BOUND, listening: true };

/** What is said of a listener in this state; `isStillClosing`: some worker may not have closed it yet. */
export function bindResultFor(
  state: ListenerState | undefined,
  { isStillClosing }: { readonly isStillClosing: boolean },
): BindResult {
  switch (state?.kind) {
    case 'open': {
      const { isConfirmed, listeningWorkers } = state.opening;
      if (!isConfirmed) return NOT_BOUND;
      return listeningWorkers.size > 0 ? LISTENING : BOUND;
    }
    case 'allocated':
      return isStillClosing ? LISTENING : BOUND;
    case 'failed':
    case 'busy':
      return { ...NOT_BOUND, error: state.error };
    case undefined:
      return NOT_BOUND;
  }
}

/** What is said of all listeners: the same list, and the same reports, as long as they say the same. */
export class ListenerReports {
  #last: readonly ListenerReport[] = [];

  update(routes: Iterable<Route>, saidFor: (route: Route) => BindResult): readonly ListenerReport[] {
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

function isSameReport(known: ListenerReport, { listener, service }: Route, said: BindResult): boolean {
  return (
    known.id === listener.id &&
    known.service === service.uid &&
    known.bound === said.bound &&
    known.listening === said.listening &&
    known.error === said.error
  );
}

const BIND_FIXES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'stop that process, or give the Service another port',
  EACCES: 'grant the capability to the proxy, or give the Service a port from 1024 on',
  EADDRNOTAVAIL: "correct the node's addresses (annotation weir.dev/addresses)",
};

/** Why a listener could not be bound, for the Service's condition: what, where, and what to do. */
export function bindErrorMessage(code: string, { address, port }: SocketAddress): string {
  const cause = Object.assign(new Error(code), { code });
  const advice = BIND_FIXES[code] ?? 'see the log of the proxy; it is tried again';
  return listenError(cause, { address: formatHostPort({ host: address, port }), advice }).message;
}
