// What becomes of a client by its ClientHello. Where several Services share a listener, its server name says whose it is, and only
// then it is known whose limits, source ranges and cut-offs concern it. Others have the port, too, so refusals are alerts.
import { type Route, routeRefusalFor, terminatingTlsPort } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { DownstreamInfo } from '../relay/arrived.ts';
import { TLS_ALERT, type TlsAlert } from '../tls/alert.ts';
import type { RoutingDecision } from './arrival.ts';
import type { Upstream } from './route-home.ts';

/** Whether there is a certificate for this route that can be shown. */
export type HasCertificate = (route: Route) => boolean;

/** Of one whose Service has the listener alone, and a place for it. */
export function routeOnOwnListener(
  home: Upstream,
  { serverName }: Pick<DownstreamInfo, 'serverName'>,
  hasCertificate: HasCertificate,
): RoutingDecision {
  const isHere = terminatingTlsPort(home.route) !== undefined;
  if (!home.servesHost(serverName)) return { ...REFUSED_UNKNOWN_HOST, endsTls: isHere };
  if (isHere && !hasCertificate(home.route)) return REFUSED_NO_CERTIFICATE;
  return { kind: 'in', endsTls: isHere };
}

export interface SharedListenerRouting {
  readonly hasCertificate: HasCertificate;
  /** A place under the limits of the Service. */
  admit(uid: string): Grant | Outcome;
}

/** `home`: of the Service that has the name; undefined: nobody has. */
export function routeOnSharedListener(
  home: Upstream | undefined,
  { client }: Pick<DownstreamInfo, 'client'>,
  { hasCertificate, admit }: SharedListenerRouting,
): RoutingDecision {
  if (home === undefined) return REFUSED_UNKNOWN_HOST;
  const { group: service, route } = home;
  const isHere = terminatingTlsPort(route) !== undefined;
  const outcome = service.isCutOff ? 'cut-off' : routeRefusalFor(route, client);
  if (outcome !== undefined) {
    return { kind: 'refused', outcome, alert: ALERT_BY_OUTCOME[outcome], claim: { service }, endsTls: isHere };
  }
  if (isHere && !hasCertificate(route)) return { ...REFUSED_NO_CERTIFICATE, claim: { service } };
  const grant = admit(service.service.uid);
  return typeof grant === 'string'
    ? { kind: 'refused', outcome: grant, alert: undefined, claim: { service }, endsTls: isHere }
    : { kind: 'in', claim: { service, grant }, endsTls: isHere };
}

const REFUSED_UNKNOWN_HOST: RoutingDecision = {
  kind: 'refused',
  outcome: 'unknown-host',
  alert: TLS_ALERT.unrecognizedName,
};
const REFUSED_NO_CERTIFICATE: RoutingDecision = {
  kind: 'refused',
  outcome: 'no-certificate',
  alert: TLS_ALERT.internalError,
  endsTls: true,
};

const ALERT_BY_OUTCOME: Readonly<Record<'cut-off' | 'source-range' | 'no-endpoints', TlsAlert>> = {
  'cut-off': TLS_ALERT.accessDenied,
  'source-range': TLS_ALERT.accessDenied,
  'no-endpoints': TLS_ALERT.internalError,
};
