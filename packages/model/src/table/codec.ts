// Encodes table entries as JSON. Each entry carries its schema version, so that proxies of two versions can share a table during an
// upgrade: a reader skips and counts entries of an unknown version.
import { type HttpRoute, REDIRECT_STATUSES } from '../http/route.ts';
import { httpRouteMistakes } from '../http/route-mistakes.ts';
import type { Entry } from './entry.ts';

const SCHEMA_VERSION = 1;
/**
 * The schema version of shared listeners. A reader without support for shared listeners must skip them, because that reader would give all
 * clients to one Service.
 */
const SHARED_LISTENER_SCHEMA_VERSION = 2;
/**
 * The schema version of Services with TLS termination. A reader without support for TLS termination must skip such Services, because that
 * reader would relay encrypted bytes to the endpoints and ask no client for a certificate.
 */
const TLS_TERMINATION_SCHEMA_VERSION = 3;

/**
 * The schema version of Services with a path prefix. A reader without support for path prefixes must skip such Services, because that reader
 * would give all requests to one Service, whatever the path is.
 */
const PATH_PREFIX_SCHEMA_VERSION = 4;

/**
 * The schema version of Services whose endpoints expect TLS after TLS termination. A reader without support must skip such Services,
 * because that reader would send decrypted requests to the endpoints.
 */
const BACKEND_TLS_SCHEMA_VERSION = 5;

/**
 * The schema version of certificates for endpoints. A reader without support must skip them, because that reader would show them to
 * clients.
 */
const ENDPOINT_CERTIFICATE_SCHEMA_VERSION = 6;

/**
 * The schema version of HTTP routes and of the listeners of their backends. A reader without support must skip both, because that reader
 * would route clients to a backend by the hosts of the Service, and not by the HTTP routes.
 */
const HTTP_ROUTE_SCHEMA_VERSION = 7;

type Check = (value: unknown) => boolean;

/** Returns the entry as JSON, with the schema version in an additional field `v`. */
export function encodeEntry(entry: Entry): string {
  return JSON.stringify({ v: versionOf(entry), ...entry });
}

function versionOf(entry: Entry): number {
  if (entry.kind === 'http-route') return HTTP_ROUTE_SCHEMA_VERSION;
  if (entry.kind === 'listener' && entry.backendPort !== undefined) return HTTP_ROUTE_SCHEMA_VERSION;
  if (entry.kind === 'listener' && entry.shared === true) return SHARED_LISTENER_SCHEMA_VERSION;
  if (entry.kind === 'certificate' && entry.forEndpoints === true) return ENDPOINT_CERTIFICATE_SCHEMA_VERSION;
  if (entry.kind === 'service' && entry.settings?.tls?.backend !== undefined) return BACKEND_TLS_SCHEMA_VERSION;
  if (entry.kind === 'service' && entry.settings?.pathPrefix !== undefined) return PATH_PREFIX_SCHEMA_VERSION;
  if (entry.kind === 'service' && entry.settings?.tls !== undefined) return TLS_TERMINATION_SCHEMA_VERSION;
  return SCHEMA_VERSION;
}

/** Decodes the JSON of `encodeEntry`; returns undefined if the text is damaged or has an unknown schema version. */
export function decodeEntry(text: string): Entry | undefined {
  const value = parse(text);
  if (!isRecord(value) || !isVersion(value.v) || typeof value.kind !== 'string') return undefined;
  const shape = ENTRY_SHAPES.get(value.kind);
  if (shape === undefined || !isText(value.id) || !hasShape(value, shape)) return undefined;
  const { v: _version, ...entry } = value;
  return entry as unknown as Entry;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText: Check = (value) => typeof value === 'string';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isPort: Check = (value) => isCount(value) && (value as number) <= 65_535;
const isProtocol: Check = (value) => value === 'TCP' || value === 'UDP';
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const nullOr =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const objectOf = (fields: Record<string, Check>): Check => {
  const shape = shapeOf(fields);
  return (value) => isRecord(value) && hasShape(value, shape);
};

/** The fields of an object as pairs. The pairs are computed once, because decoding a large table checks a million fields. */
type Shape = readonly (readonly [field: string, check: Check])[];

function shapeOf(fields: Record<string, Check>): Shape {
  return Object.entries(fields);
}

function shapesOf<K extends string>(fields: Readonly<Record<K, Record<string, Check>>>): ReadonlyMap<string, Shape> {
  return new Map(Object.keys(fields).map((kind) => [kind, shapeOf(fields[kind as K])]));
}

function hasShape(value: Record<string, unknown>, shape: Shape): boolean {
  for (const [field, check] of shape) if (!check(value[field])) return false;
  return true;
}

const STATUS_REASON = objectOf({ reason: isText, message: isText });

const isOneOf =
  (...allowed: readonly unknown[]): Check =>
  (value) =>
    allowed.includes(value);
const isBoolean = isOneOf(true, false);
const isVersion = isOneOf(
  SCHEMA_VERSION,
  SHARED_LISTENER_SCHEMA_VERSION,
  TLS_TERMINATION_SCHEMA_VERSION,
  PATH_PREFIX_SCHEMA_VERSION,
  BACKEND_TLS_SCHEMA_VERSION,
  ENDPOINT_CERTIFICATE_SCHEMA_VERSION,
  HTTP_ROUTE_SCHEMA_VERSION,
);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);

/** Returns a check for a discriminated union. `fields` holds the checks of the other fields for each value of `kind`. */
const unionByKind = (fields: Readonly<Record<string, Record<string, Check>>>): Check => {
  const shapes = shapesOf(fields);
  return (value) => {
    if (!isRecord(value) || typeof value.kind !== 'string') return false;
    const shape = shapes.get(value.kind);
    return shape !== undefined && hasShape(value, shape);
  };
};

const TIMING = {
  intervalMs: isCount,
  timeoutMs: isCount,
  healthyThreshold: isCount,
  unhealthyThreshold: isCount,
  drainTimeoutMs: optional(isCount),
};

const SETTINGS = objectOf({
  algorithm: isOneOf('least-connections', 'round-robin', 'random', 'maglev', 'first'),
  affinity: unionByKind({ none: {}, 'client-ip': { timeoutMs: isCount } }),
  preferSameZone: isBoolean,
  connectTimeoutMs: isCount,
  idleTimeoutMs: isCount,
  udpIdleTimeoutMs: isCount,
  drainTimeoutMs: isCount,
  sourceRanges: listOf(isText),
  proxyProtocol: isOneOf('v1', 'v2', null),
  healthCheck: unionByKind({
    off: {},
    tcp: { grpcService: optional(isText), ...TIMING },
    http: { path: isText, overTls: optional(isOneOf(true)), ...TIMING },
  }),
  limits: objectOf({
    connections: nullOr(isCount),
    connectionsPerClient: nullOr(isCount),
    inBitsPerSecond: nullOr(isCount),
    outBitsPerSecond: nullOr(isCount),
    newConnectionsPerSecond: optional(isCount),
    newConnectionsPerSecondPerClient: optional(isCount),
    requestsPerSecond: optional(isCount),
  }),
  tlsPassthrough: isBoolean,
  tls: optional(
    objectOf({
      secret: isText,
      otherSecrets: optional(listOf(isText)),
      ports: listOf(objectOf({ port: isPort, alpn: listOf(isText) })),
      clientCaSecret: nullOr(isText),
      httpsRedirectPort: optional(isPort),
      hstsMaxAgeSeconds: optional(isCount),
      backend: optional(
        objectOf({ caSecret: isText, certificateSecret: optional(isText), serverName: isText, ports: listOf(isPort) }),
      ),
    }),
  ),
  httpPorts: optional(listOf(isPort)),
  http2Ports: optional(listOf(isPort)),
  hosts: listOf(isText),
  pathPrefix: optional(isText),
  stripPrefix: optional(isOneOf(true)),
  maxBodyBytes: optional(isCount),
  requestTimeoutMs: optional(isCount),
  stickyCookie: optional(isText),
  errorPages: optional(isText),
  accessLog: optional(objectOf({ requestsPerMillion: isCount, hasQuery: optional(isOneOf(true)) })),
  pool: nullOr(isText),
  nodes: nullOr(isCount),
});

const FIELD_MATCHES = listOf(unionByKind({ exact: { name: isText, value: isText }, present: { name: isText } }));
const HEADER_FILTER = {
  set: listOf(objectOf({ name: isText, value: isText })),
  add: listOf(objectOf({ name: isText, value: isText })),
  remove: listOf(isText),
};
const PATH_REPLACEMENT = nullOr(objectOf({ kind: isOneOf('full', 'prefix'), value: isText }));

const HTTP_ROUTE = objectOf({
  id: isText,
  tenant: isText,
  createdAt: isCount,
  hosts: listOf(isText),
  matches: listOf(
    objectOf({
      path: objectOf({ kind: isOneOf('exact', 'prefix'), value: isText }),
      method: nullOr(isText),
      headers: FIELD_MATCHES,
      query: FIELD_MATCHES,
    }),
  ),
  filters: listOf(
    unionByKind({
      'request-headers': HEADER_FILTER,
      'response-headers': HEADER_FILTER,
      redirect: {
        scheme: isOneOf('http', 'https', null),
        host: nullOr(isText),
        port: nullOr(isPort),
        path: PATH_REPLACEMENT,
        status: isOneOf(...REDIRECT_STATUSES),
      },
      rewrite: { host: nullOr(isText), path: PATH_REPLACEMENT },
    }),
  ),
  backends: listOf(objectOf({ service: isText, port: isPort, weight: isCount })),
  timeouts: objectOf({ requestMs: nullOr(isCount), backendRequestMs: nullOr(isCount) }),
});

/** A router needs valid routes, and a proxy must not forward what an invalid filter would write. */
const isValidRoute: Check = (value) => HTTP_ROUTE(value) && httpRouteMistakes(value as HttpRoute).length === 0;

const ENTRY_SHAPES = shapesOf<Entry['kind']>({
  node: {
    name: isText,
    bindAddresses: listOf(isText),
    publishedAddresses: listOf(isText),
    zone: nullOr(isText),
    pool: isText,
  },
  tenant: {
    name: isText,
    policy: nullOr(isText),
    namespaces: listOf(isText),
    limits: isRecord,
    policyLimits: optional(isRecord),
    rules: optional(listOf(isRecord)),
    used: objectOf({ services: isCount, ports: isCount }),
  },
  service: {
    uid: isText,
    namespace: isText,
    name: isText,
    tenant: nullOr(isText),
    accepted: STATUS_REASON,
    degraded: listOf(STATUS_REASON),
    settings: nullOr(SETTINGS),
    ports: listOf(
      objectOf({
        name: nullOr(isText),
        port: isPort,
        protocol: isText,
        error: nullOr(STATUS_REASON),
        formerName: optional(nullOr(isText)),
        alone: optional(isOneOf(true)),
      }),
    ),
    pool: nullOr(isText),
    nodes: listOf(isText),
  },
  certificate: {
    service: isText,
    chain: isText,
    keyDigest: isText,
    sealedKey: optional(isText),
    notAfter: Number.isSafeInteger,
    clientAuthorities: nullOr(isText),
    backendAuthorities: optional(isText),
    forEndpoints: optional(isOneOf(true)),
    ocsp: optional(objectOf({ response: isText, thisUpdate: Number.isSafeInteger, nextUpdate: Number.isSafeInteger })),
  },
  'error-pages': { service: isText, pages: (value) => isRecord(value) && Object.values(value).every(isText) },
  listener: {
    node: isText,
    address: isText,
    port: isPort,
    protocol: isProtocol,
    service: isText,
    shared: optional(isOneOf(true)),
    backendPort: optional(isPort),
  },
  'http-route': { ports: listOf(isPort), route: isValidRoute },
  endpoints: {
    service: isText,
    port: isPort,
    protocol: isProtocol,
    endpoints: listOf(
      objectOf({ address: isText, port: isPort, zone: optional(isText), otherZones: optional(listOf(isText)) }),
    ),
    unready: isCount,
    leaving: optional(isOneOf(true)),
  },
  problem: { problem: objectOf({ code: isText, subject: isText, severity: isText, message: isText }) },
});
