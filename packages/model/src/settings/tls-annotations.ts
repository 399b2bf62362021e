// The annotations for TLS termination: `weir.dev/tls-secret` names the certificates. The other annotations depend on `tls-secret`, and
// name the ports at which TLS is terminated, the CAs of client certificates, and what the proxies need for TLS to the endpoints.
import { PLAIN_HTTP_PORT } from '../match/route.ts';
import { joinItems, portText, quote } from '../message-text.ts';
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import { type Annotation, pattern } from './annotation-grammar.ts';
import type { BackendTls, ServiceSettings, TlsPort } from './service-settings.ts';
import { ANNOTATION_PREFIX } from './service-settings.ts';

/** The API server's grammar for names of Secrets and ConfigMaps: an RFC 1123 subdomain. */
export const OBJECT_NAME_PATTERN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
export const MAX_OBJECT_NAME_LENGTH = 253;
const SECRET_NAME = {
  pattern: `^${OBJECT_NAME_PATTERN}$`,
  maxLength: MAX_OBJECT_NAME_LENGTH,
  expected: 'the name of a Secret in the namespace of the Service',
} as const;
/** The maximum number of certificates of a Service. Bounds the time in which a worker chooses the certificate for a client. */
const MAX_CERTIFICATES = 16;
const CA_NAME = {
  ...SECRET_NAME,
  expected: 'the name of a Secret or ConfigMap in the namespace of the Service',
} as const;
const SECRET_NAMES = {
  pattern: `^${OBJECT_NAME_PATTERN}( *, *${OBJECT_NAME_PATTERN}){0,${MAX_CERTIFICATES - 1}}$`,
  maxLength: MAX_CERTIFICATES * (MAX_OBJECT_NAME_LENGTH + 2),
  expected: `the name of a Secret in the namespace of the Service, or up to ${MAX_CERTIFICATES} names, comma separated`,
} as const;

const SERVER_NAME = {
  // The last label begins with a letter, so that an IP address is no server name.
  pattern: '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$',
  maxLength: MAX_OBJECT_NAME_LENGTH,
  expected: 'a DNS name in lower case that the certificates of the pods contain, such as shop.internal',
} as const;

/** The TLS annotations. They are parsed in this order, after `tls-passthrough`. */
export const TLS_ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  'tls-secret': withoutPassthrough(
    pattern(SECRET_NAMES, (value) => {
      const [secret = '', ...others] = new Set(value.split(',').map((name) => name.trim()));
      return { tls: { secret, ...(others.length > 0 && { otherSecrets: others }), ports: [], clientCaSecret: null } };
    }),
  ),
  'client-ca-secret': withTls(
    pattern(SECRET_NAME, (secret, { tls }) => (tls === undefined ? {} : { tls: { ...tls, clientCaSecret: secret } })),
  ),
  // `withTlsPorts` adds the ports.
  'backend-tls-ca': withTls(
    pattern(CA_NAME, (caSecret, { tls }) =>
      tls === undefined ? {} : { tls: { ...tls, backend: { caSecret, serverName: '', ports: [] } } },
    ),
  ),
  'backend-tls-server-name': withBackendTls(SERVER_NAME, (serverName, backend) => ({ ...backend, serverName })),
  'backend-tls-secret': withBackendTls(SECRET_NAME, (certificateSecret, backend) => ({
    ...backend,
    certificateSecret,
  })),
  // Only checks that `tls-secret` is set. `withTlsPorts` parses the value, because parsing needs the ports of the Service.
  'tls-ports': withTls({ grammar: { kind: 'ports' }, parse: () => ({}) }),
};

function withoutPassthrough({ grammar, parse }: Annotation): Annotation {
  return {
    grammar,
    parse: (value, settings) => {
      const parsed = parse(value, settings);
      return typeof parsed !== 'string' && settings.tlsPassthrough
        ? `cannot be honoured together with ${ANNOTATION_PREFIX}tls-passthrough: "true": TLS is terminated here or passed through, not both; remove one of them`
        : parsed;
    },
  };
}

/** An annotation that is refused without `tls-secret`. */
export function withTls({ grammar, parse }: Annotation): Annotation {
  return {
    grammar,
    parse: (value, settings) =>
      settings.tls === undefined
        ? `can be honoured only with ${ANNOTATION_PREFIX}tls-secret; add that annotation, or remove this one`
        : parse(value, settings),
  };
}

/** An annotation that is refused without `backend-tls-ca`. */
function withBackendTls(
  syntax: Parameters<typeof pattern>[0],
  add: (value: string, backend: BackendTls) => BackendTls,
): Annotation {
  const { grammar, parse } = pattern(syntax, (value, { tls }) =>
    tls?.backend === undefined ? {} : { tls: { ...tls, backend: add(value, tls.backend) } },
  );
  return {
    grammar,
    parse: (value, settings) =>
      settings.tls?.backend === undefined
        ? `can be honoured only with a valid ${CA_ANNOTATION}; add that annotation, or remove this one`
        : parse(value, settings),
  };
}

const CA_ANNOTATION = `${ANNOTATION_PREFIX}backend-tls-ca`;
const SERVER_NAME_ANNOTATION = `${ANNOTATION_PREFIX}backend-tls-server-name`;
const SECRET_ANNOTATION = `${ANNOTATION_PREFIX}tls-secret`;
const PORTS_ANNOTATION = `${ANNOTATION_PREFIX}tls-ports`;
const HTTPS_PORT = 443;
/** Values of appProtocol for pods that speak TLS themselves. */
const TLS_APP_PROTOCOLS = ['https', 'kubernetes.io/wss'];
/** The ALPN names for each value of appProtocol (RFC 7301, section 6; RFC 9113, section 3.2). */
const ALPN_BY_APP_PROTOCOL: Readonly<Record<string, readonly string[]>> = {
  http: ['h2', 'http/1.1'],
  'kubernetes.io/ws': ['h2', 'http/1.1'],
  'kubernetes.io/h2c': ['h2', 'http/1.1'],
  grpc: ['h2', 'http/1.1'],
  https: ['h2', 'http/1.1'],
  'kubernetes.io/wss': ['h2', 'http/1.1'],
};

/** Returns the settings with the ports at which TLS is terminated; adds messages for invalid ports to `mistakes`. */
export function withTlsPorts(service: ServiceObject, settings: ServiceSettings, mistakes: string[]): ServiceSettings {
  const { tls } = settings;
  if (tls === undefined) return settings;
  const value = Object.hasOwn(service.annotations, PORTS_ANNOTATION)
    ? service.annotations[PORTS_ANNOTATION]
    : undefined;
  const mistakesBefore = mistakes.length;
  const ports = value === undefined ? defaultTlsPorts(service) : parseTlsPorts(value, service, mistakes);
  const where = value === undefined ? SECRET_ANNOTATION : PORTS_ANNOTATION;
  const encrypted = ports.filter(expectsTls);
  if (tls.backend === undefined) {
    for (const port of encrypted)
      mistakes.push(
        `annotation ${where}: TLS cannot be terminated at port ${portText(port)}, because appProtocol ${quote(port.appProtocol ?? '')} says that the pods expect TLS, and the proxies could not verify the pods; add ${CA_ANNOTATION} and ${SERVER_NAME_ANNOTATION}, use ${ANNOTATION_PREFIX}tls-passthrough: "true", or set appProtocol to the protocol that the pods speak without TLS`,
      );
  } else if (ports.length > 0) {
    const mistake = backendMistake(service, encrypted);
    if (mistake !== undefined) mistakes.push(`annotation ${CA_ANNOTATION}: ${quote(tls.backend.caSecret)} ${mistake}`);
  }
  // A Service with only UDP ports is reported by `tcpOnlyMistakes`.
  const isTcp = service.ports.some(({ protocol }) => protocol === 'TCP');
  if (isTcp && ports.length === 0 && mistakes.length === mistakesBefore)
    mistakes.push(
      `annotation ${SECRET_ANNOTATION}: ${quote(service.annotations[SECRET_ANNOTATION] ?? '')} is used at no port: by default TLS is terminated at 443/TCP only; name other ports in annotation ${PORTS_ANNOTATION}`,
    );
  const backend = tls.backend && { backend: { ...tls.backend, ports: encrypted.map(({ port }) => port) } };
  return { ...settings, tls: { ...tls, ports: ports.map(tlsPort), ...backend } };
}

function expectsTls({ appProtocol }: ServicePort): boolean {
  return TLS_APP_PROTOCOLS.includes(appProtocol ?? '');
}

function backendMistake(service: ServiceObject, encrypted: readonly ServicePort[]): string | undefined {
  if (!Object.hasOwn(service.annotations, SERVER_NAME_ANNOTATION))
    return `can be honoured only with ${SERVER_NAME_ANNOTATION}; add that annotation with the name in the certificates of the pods`;
  return encrypted.length === 0
    ? 'is used at no port: TLS is terminated at no port with appProtocol: https or kubernetes.io/wss; set appProtocol, or remove this annotation'
    : undefined;
}

const SECRET_NAMES_REGEXP = new RegExp(SECRET_NAMES.pattern);

/**
 * Whether TLS is terminated at a port whose endpoints expect TLS. Needs only the annotations that choose the ports, so the other
 * annotations may be invalid.
 */
export function isEncryptedAgain(service: ServiceObject, port: ServicePort): boolean {
  if (port.protocol !== 'TCP' || port.port === PLAIN_HTTP_PORT || !expectsTls(port)) return false;
  const read = (name: string): string | undefined =>
    Object.hasOwn(service.annotations, name) ? service.annotations[name] : undefined;
  const secrets = read(SECRET_ANNOTATION) ?? '';
  if (secrets.length > SECRET_NAMES.maxLength || !SECRET_NAMES_REGEXP.test(secrets)) return false;
  if (read(`${ANNOTATION_PREFIX}tls-passthrough`) === 'true') return false;
  const ports = read(PORTS_ANNOTATION);
  return ports === undefined || parseTlsPorts(ports, service, []).includes(port);
}

/**
 * Whether the Service may want TLS to be terminated at the port. If so, the port must not be served without TLS. `requested` holds the
 * settings that the Service asks for. If `requested` is undefined because the settings are invalid, a TLS annotation may mean every TCP
 * port except 80.
 */
export function mayTerminateTls(
  { annotations }: ServiceObject,
  requested: ServiceSettings | undefined,
  { port, protocol }: ServicePort,
): boolean {
  if (protocol !== 'TCP' || port === PLAIN_HTTP_PORT) return false;
  if (requested !== undefined) return requested.tls?.ports.some((tlsPort) => tlsPort.port === port) === true;
  return Object.keys(TLS_ANNOTATIONS).some((name) => Object.hasOwn(annotations, `${ANNOTATION_PREFIX}${name}`));
}

function defaultTlsPorts({ ports }: ServiceObject): ServicePort[] {
  return ports.filter(
    ({ port, protocol, appProtocol }) =>
      protocol === 'TCP' &&
      port !== PLAIN_HTTP_PORT &&
      (port === HTTPS_PORT || TLS_APP_PROTOCOLS.includes(appProtocol ?? '')),
  );
}

/**
 * The most items that are read: the numbers and names of 100 ports. The limit is necessary, because messages for 100,000 invalid items
 * would take seconds.
 */
const MAX_TLS_PORTS = 200;

function parseTlsPorts(value: string, { ports }: ServiceObject, mistakes: string[]): ServicePort[] {
  const tcpPorts = ports.filter(({ protocol }) => protocol === 'TCP');
  // A name never equals a number, because the API server requires a letter in each name.
  const byText = new Map(
    tcpPorts.flatMap((port) => [[String(port.port), port] as const, [port.name ?? '', port] as const]),
  );
  byText.delete('');
  const addMistake = (text: string, why: string): void => {
    mistakes.push(`annotation ${PORTS_ANNOTATION}: ${quote(text)} ${why}`);
  };
  const parts = value.split(',');
  if (parts.length > MAX_TLS_PORTS) {
    const advice = `at most ${MAX_TLS_PORTS} are read; name each port of the Service once`;
    mistakes.push(`annotation ${PORTS_ANNOTATION}: ${parts.length} ports are too many: ${advice}`);
    return [];
  }
  const requested = new Set<ServicePort>();
  for (const part of parts) {
    const text = part.trim();
    const found = byText.get(text);
    if (found === undefined) {
      const possible = tcpPorts.filter(({ port }) => port !== PLAIN_HTTP_PORT);
      const items = possible.map(({ port, name }) => (name === null ? String(port) : `${port} (${name})`));
      const advice =
        items.length === 0
          ? 'the Service has no port at which TLS can be terminated'
          : `use ${joinItems(items)}, comma separated`;
      addMistake(text, `is neither the number nor the name of a TCP port of the Service; ${advice}`);
    } else if (found.port === PLAIN_HTTP_PORT)
      addMistake(text, 'is not allowed: port 80 is plain HTTP, never TLS; use another port');
    else requested.add(found);
  }
  return [...requested].sort((a, b) => a.port - b.port);
}

function tlsPort({ port, appProtocol }: ServicePort): TlsPort {
  const alpn =
    appProtocol !== null && Object.hasOwn(ALPN_BY_APP_PROTOCOL, appProtocol)
      ? ALPN_BY_APP_PROTOCOL[appProtocol]
      : undefined;
  return { port, alpn: alpn ?? [] };
}
