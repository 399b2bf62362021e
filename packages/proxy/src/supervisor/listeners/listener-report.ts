import type { ListenerReport, Route } from '@weir/model/data-plane';
import { formatHostPort, listenError } from '@weir/runtime';
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import type { ListenerShortage } from './listener-openings.ts';
import type { ListenerState } from './listener-states.ts';

export type BindResult = Pick<ListenerReport, 'bound' | 'listening' | 'error'>;
const NOT_BOUND: BindResult = { bound: false, listening: false, error: null };
const BOUND: BindResult = { ...NOT_BOUND, bound: true };
const LISTENING: BindResult = { ...BOUND, listening: true };

/**
 * Returns the bind result of a listener in this state. `isStillClosing` is true if a worker may still have the listener
 * open.
 */
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

/**
 * Builds the reports of all listeners. Reuses the previous list and the reports in it as long as they do not change.
 */
export class ListenerReports {
  #last: readonly ListenerReport[] = [];

  update(routes: Iterable<Route>, resultFor: (route: Route) => BindResult): readonly ListenerReport[] {
    const before = this.#last;
    const reports: ListenerReport[] = [];
    let isSame = true;
    for (const route of routes) {
      const result = resultFor(route);
      const known = before[reports.length];
      if (known !== undefined && isSameReport(known, route, result)) reports.push(known);
      else {
        const { bound, listening, error } = result;
        reports.push({ id: route.listener.id, service: route.service.uid, bound, listening, error });
        isSame = false;
      }
    }
    if (!isSame || reports.length !== before.length) this.#last = reports;
    return this.#last;
  }
}

function isSameReport(known: ListenerReport, { listener, service }: Route, result: BindResult): boolean {
  return (
    known.id === listener.id &&
    known.service === service.uid &&
    known.bound === result.bound &&
    known.listening === result.listening &&
    known.error === result.error
  );
}

const BIND_FIXES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'stop that process, or give the Service another port',
  EACCES: 'grant the capability to the proxy, or give the Service a port from 1024 on',
  EADDRNOTAVAIL: "correct the node's addresses (annotation weir.dev/addresses)",
};

/** Returns the message for the Service's condition: what failed, where, and what to do. `code` is an errno name. */
export function bindErrorMessage(code: string, { address, port }: SocketAddress): string {
  const cause = Object.assign(new Error(code), { code });
  const advice = BIND_FIXES[code] ?? 'the proxy retries; see its log';
  return listenError(cause, { address: formatHostPort({ host: address, port }), advice }).message;
}

/** Returns the message for a listener that is not opened because of a shortage of descriptors. */
export function descriptorShortageMessage(
  shortage: ListenerShortage,
  { tenant, at }: { readonly tenant: string | null; readonly at: SocketAddress },
): string {
  const where = formatHostPort({ host: at.address, port: at.port });
  const who = shortage === 'tenant' ? `the listeners of tenant "${tenant}"` : 'the listeners of this proxy';
  return `cannot listen on ${where}: ${who} use all file descriptors that they may use; use fewer ports, or ask the operator for a higher limit of open files or fewer workers`;
}
