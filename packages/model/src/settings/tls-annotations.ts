// `weir.dev/tls-secret` and what belongs to it: at which ports TLS ends, with which certificate, and whom it lets in.

import { joinItems, portText, quote } from '../message-text.ts';
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import type { ServiceSettings, TlsPort, TlsTermination } from './service-settings.ts';
import { ANNOTATION_PREFIX } from './service-settings.ts';

/** Part of the settings, after those parsed before; or what is wrong. */
type ParseValue = (value: string, settings: ServiceSettings) => Pick<ServiceSettings, 'tls'> | string;

/** As the API server has it of a Secret: RFC 1123, subdomain. */
const SECRET_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const SECRET_NAME_HELP = 'is not allowed; use the name of a Secret in the namespace of the Service';

/** In the order in which they build on another, behind `tls-passthrough`. */
export const TLS_ANNOTATIONS: Readonly<Record<string, ParseValue>> = {
  'tls-secret': (value, { tlsPassthrough }) => {
    if (!SECRET_NAME.test(value)) return SECRET_NAME_HELP;
    if (tlsPassthrough)
      return `cannot be honoured together with ${ANNOTATION_PREFIX}tls-passthrough: "true": TLS ends here or is passed on, not both; remove one of them`;
    return { tls: { secret: value, ports: [], clientCaSecret: null } };
  },
  'client-ca-secret': withTls((value, tls) =>
    SECRET_NAME.test(value) ? { tls: { ...tls, clientCaSecret: value } } : SECRET_NAME_HELP,
  ),
  // Read with the ports of the Service: `tlsPortsFor`.
  'tls-ports': withTls(() => ({})),
};

function withTls(parse: (value: string, tls: TlsTermination) => Pick<ServiceSettings, 'tls'> | string): ParseValue {
  return (value, { tls }) =>
    tls === undefined
      ? `can be honoured only with ${ANNOTATION_PREFIX}tls-secret; add that annotation, or remove this one`
      : parse(value, tls);
}

const SECRET_ANNOTATION = `${ANNOTATION_PREFIX}tls-secret`;
const PORTS_ANNOTATION = `${ANNOTATION_PREFIX}tls-ports`;
/** Of plain HTTP: who wrote 443 there, too, has mistaken the line. */
const HTTP_PORT = 80;
const HTTPS_PORT = 443;
/** The pods speak TLS themselves. */
const TLS_APP_PROTOCOLS = ['https', 'kubernetes.io/wss'];
/** What pods say that they speak, as ALPN names it (RFC 7301, 6; RFC 9113, 3.2). */
const ALPN_BY_APP_PROTOCOL: Readonly<Record<string, readonly string[]>> = {
  http: ['http/1.1'],
  'kubernetes.io/ws': ['http/1.1'],
  'kubernetes.io/h2c': ['h2'],
  grpc: ['h2'],
};

/** The settings with the ports at which TLS ends; what is wrong goes into `mistakes`. */
export function withTlsPorts(service: ServiceObject, settings: ServiceSettings, mistakes: string[]): ServiceSettings {
  const { tls } = settings;
  if (tls === undefined) return settings;
  const asked = Object.hasOwn(service.annotations, PORTS_ANNOTATION)
    ? service.annotations[PORTS_ANNOTATION]
    : undefined;
  const before = mistakes.length;
  const ports = asked === undefined ? defaultTlsPorts(service) : parseTlsPorts(asked, service, mistakes);
  const where = asked === undefined ? SECRET_ANNOTATION : PORTS_ANNOTATION;
  for (const port of ports) {
    if (TLS_APP_PROTOCOLS.includes(port.appProtocol ?? ''))
      mistakes.push(
        `annotation ${where}: TLS cannot end at port ${portText(port)}, where appProtocol ${quote(port.appProtocol ?? '')} says that the pods expect TLS, too: this version encrypts nothing toward them; use ${ANNOTATION_PREFIX}tls-passthrough: "true", or the appProtocol that they speak without TLS`,
      );
  }
  // Of UDP alone: `tcpOnlyMistakes` says so.
  const isTcp = service.ports.some(({ protocol }) => protocol === 'TCP');
  if (isTcp && ports.length === 0 && mistakes.length === before)
    mistakes.push(
      `annotation ${SECRET_ANNOTATION}: ${quote(tls.secret)} would be used at no port: by itself TLS ends at 443/TCP; name others in annotation ${PORTS_ANNOTATION}`,
    );
  return { ...settings, tls: { ...tls, ports: ports.map(tlsPort) } };
}

/**
 * Whether TLS may be meant to end at the port: as its Service asks, which is undefined where that cannot be read. Whatever else is served
 * meanwhile, such a port must not be opened in the clear.
 */
export function mayTerminateTls(
  { annotations }: ServiceObject,
  asked: ServiceSettings | undefined,
  { port, protocol }: ServicePort,
): boolean {
  if (protocol !== 'TCP' || port === HTTP_PORT) return false;
  if (asked !== undefined) return asked.tls?.ports.some((each) => each.port === port) === true;
  return Object.keys(TLS_ANNOTATIONS).some((name) => Object.hasOwn(annotations, `${ANNOTATION_PREFIX}${name}`));
}

function defaultTlsPorts({ ports }: ServiceObject): ServicePort[] {
  return ports.filter(
    ({ port, protocol, appProtocol }) =>
      protocol === 'TCP' &&
      port !== HTTP_PORT &&
      (port === HTTPS_PORT || TLS_APP_PROTOCOLS.includes(appProtocol ?? '')),
  );
}

/** Each port that a Service may have by number and by name. With a hundred thousand that are none, telling so would take seconds. */
const MAX_TLS_PORTS = 200;

function parseTlsPorts(value: string, { ports }: ServiceObject, mistakes: string[]): ServicePort[] {
  const mine = ports.filter(({ protocol }) => protocol === 'TCP');
  // The API server wants a letter in each name.
  const byText = new Map(
    mine.flatMap((port) => [[String(port.port), port] as const, [port.name ?? '', port] as const]),
  );
  byText.delete('');
  const wrong = (text: string, why: string): void => {
    mistakes.push(`annotation ${PORTS_ANNOTATION}: ${quote(text)} ${why}`);
  };
  const parts = value.split(',');
  if (parts.length > MAX_TLS_PORTS) {
    const most = `at most ${MAX_TLS_PORTS} are read; name each port of the Service once`;
    mistakes.push(`annotation ${PORTS_ANNOTATION}: ${parts.length} ports are too many: ${most}`);
    return [];
  }
  const asked = new Set<ServicePort>();
  for (const part of parts) {
    const text = part.trim();
    const found = byText.get(text);
    if (found === undefined) {
      const able = mine.filter(({ port }) => port !== HTTP_PORT);
      const own = able.map(({ port, name }) => (name === null ? String(port) : `${port} (${name})`));
      const use = own.length === 0 ? 'it has none where TLS could end' : `use ${joinItems(own)}, comma separated`;
      wrong(text, `is no TCP port of the Service, by number or name; ${use}`);
    } else if (found.port === HTTP_PORT)
      wrong(text, 'is not allowed: port 80 is plain HTTP, and TLS never ends there; use another port');
    else asked.add(found);
  }
  return [...asked].sort((a, b) => a.port - b.port);
}

function tlsPort({ port, appProtocol }: ServicePort): TlsPort {
  const known =
    appProtocol !== null && Object.hasOwn(ALPN_BY_APP_PROTOCOL, appProtocol)
      ? ALPN_BY_APP_PROTOCOL[appProtocol]
      : undefined;
  return { port, alpn: known ?? [] };
}
