// What becomes of a client by its ClientHello. Where several Services share a listener, its server name says whose it is, and only
// then it is known whose limits, source ranges and cut-offs concern it. Others have the port, too, so refusals are alerts.
import { endsTls, type Route, refusalFor } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { Arrived } from '../relay/arrived.ts';
import { ALERT, type Alert } from '../tls/alert.ts';
import type { Verdict } from './arrival.ts';
import type { RouteHome } from './route-home.ts';

/** Whether there is a certificate for this route that can be shown. */
export type HasCertificate = (route: Route) => boolean;

/** Of one whose Service has the listener alone, and a place for it. */
export function judgeOwn(
  home: RouteHome,
  { serverName }: Pick<Arrived, 'serverName'>,
  hasCertificate: HasCertificate,
): Verdict {
  const isHere = endsTls(home.route) !== undefined;
  if (!home.isServed(serverName)) return { ...UNKNOWN_HOST, endsTls: isHere };
  if (isHere && !hasCertificate(home.route)) return NO_CERTIFICATE;
  return { kind: 'in', endsTls: isHere };
}

export interface StrangerTools {
  readonly hasCertificate: HasCertificate;
  /** A place under the limits of the Service. */
  admit(uid: string): Grant | Outcome;
}

/** `home`: of the Service that has the name; undefined: nobody has. */
export function judgeStranger(
  home: RouteHome | undefined,
  { client }: Pick<Arrived, 'client'>,
  { hasCertificate, admit }: StrangerTools,
): Verdict {
  if (home === undefined) return UNKNOWN_HOST;
  const { group, route } = home;
  const isHere = endsTls(route) !== undefined;
  const outcome = group.isCutOff ? 'cut-off' : refusalFor(route, client);
  if (outcome !== undefined) {
    return { kind: 'refused', outcome, alert: ALERTS[outcome], claim: { group }, endsTls: isHere };
  }
  if (isHere && !hasCertificate(route)) return { ...NO_CERTIFICATE, claim: { group } };
  const grant = admit(group.service.uid);
  return typeof grant === 'string'
    ? { kind: 'refused', outcome: grant, alert: undefined, claim: { group }, endsTls: isHere }
    : { kind: 'in', claim: { group, grant }, endsTls: isHere };
}

const UNKNOWN_HOST: Verdict = { kind: 'refused', outcome: 'unknown-host', alert: ALERT.unrecognizedName };
const NO_CERTIFICATE: Verdict = {
  kind: 'refused',
  outcome: 'no-certificate',
  alert: ALERT.internalError,
  endsTls: true,
};

const ALERTS: Readonly<Record<'cut-off' | 'source-range' | 'no-endpoints', Alert>> = {
  'cut-off': ALERT.accessDenied,
  'source-range': ALERT.accessDenied,
  'no-endpoints': ALERT.internalError,
};
