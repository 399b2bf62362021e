// A listener that several Services share: whose a client is, says the server name of its ClientHello, and only then it is known
// whose limits, source ranges and cut-offs concern it. The port is open for the others, so refusals are alerts.
import { refusalFor } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { Arrived } from '../relay/arrived.ts';
import { ALERT, type Alert } from '../tls/alert.ts';
import type { Verdict } from './arrival.ts';
import type { RouteHome } from './route-home.ts';

/** `home`: of the Service that has the name; undefined: nobody has. `admit`: a place under its limits. */
export function judgeStranger(
  home: RouteHome | undefined,
  { client }: Pick<Arrived, 'client'>,
  admit: (uid: string) => Grant | Outcome,
): Verdict {
  if (home === undefined) return { kind: 'refused', outcome: 'unknown-host', alert: ALERT.unrecognizedName };
  const { group, route } = home;
  const outcome = group.isCutOff ? 'cut-off' : refusalFor(route, client);
  if (outcome !== undefined) return { kind: 'refused', outcome, alert: ALERTS[outcome], claim: { group } };
  const grant = admit(group.service.uid);
  return typeof grant === 'string'
    ? { kind: 'refused', outcome: grant, alert: undefined, claim: { group } }
    : { kind: 'in', claim: { group, grant } };
}

const ALERTS: Readonly<Record<'cut-off' | 'source-range' | 'no-endpoints', Alert>> = {
  'cut-off': ALERT.accessDenied,
  'source-range': ALERT.accessDenied,
  'no-endpoints': ALERT.internalError,
};
