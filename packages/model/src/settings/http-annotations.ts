// The settings of the ports at which the proxies relay HTTP requests: which ports these are, and the annotations for paths.
import { PLAIN_HTTP_PORT } from '../match/route.ts';
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import { type Annotation, oneOfAnnotation } from './annotation-grammar.ts';
import { ANNOTATION_PREFIX, type ServiceSettings } from './service-settings.ts';
import { isEncryptedAgain } from './tls-annotations.ts';

/** The values of appProtocol for endpoints that speak HTTP/2 without TLS (RFC 9113, section 3.3: prior knowledge). */
const HTTP2_APP_PROTOCOLS: readonly (string | null)[] = ['kubernetes.io/h2c', 'grpc'];
/** The values of appProtocol for endpoints that speak HTTP without TLS. */
const HTTP_APP_PROTOCOLS: readonly (string | null)[] = ['http', 'kubernetes.io/ws', ...HTTP2_APP_PROTOCOLS];
const PASSTHROUGH_ANNOTATION = `${ANNOTATION_PREFIX}tls-passthrough`;

/** Returns the HTTP ports of a Service. */
export function httpPortsOf(service: ServiceObject): Pick<ServiceSettings, 'httpPorts' | 'http2Ports'> {
  const ports = service.ports.filter((port) => isHttpPort(service, port));
  const http2Ports = ports.filter(({ appProtocol }) => HTTP2_APP_PROTOCOLS.includes(appProtocol));
  return {
    ...(ports.length > 0 && { httpPorts: ports.map(({ port }) => port) }),
    ...(http2Ports.length > 0 && { http2Ports: http2Ports.map(({ port }) => port) }),
  };
}

/**
 * Whether the proxies relay HTTP requests at a port of the Service, also if annotations of the Service are invalid. At a port where TLS is
 * passed through, the proxies cannot read the encrypted requests.
 */
export function isHttpPort(service: ServiceObject, servicePort: ServicePort): boolean {
  const { annotations } = service;
  const { port, protocol, appProtocol } = servicePort;
  if (isEncryptedAgain(service, servicePort)) return true;
  if (protocol !== 'TCP' || !HTTP_APP_PROTOCOLS.includes(appProtocol)) return false;
  const isPassthrough =
    Object.hasOwn(annotations, PASSTHROUGH_ANNOTATION) && annotations[PASSTHROUGH_ANNOTATION] === 'true';
  return !isPassthrough || port === PLAIN_HTTP_PORT;
}

const MAX_PREFIX_LENGTH = 1_024;
/**
 * The normal form of `parsePathAndQuery`, without a trailing slash, empty segments, and the characters `'[]^|`. A percent-encoding is in
 * upper case, and stands for no unreserved character, control character, slash or backslash.
 */
const PREFIX_PATTERN = '^(/([A-Za-z0-9._~!$&()*+,;=:@-]|%(2[0-9A-C]|3[A-F]|40|5[BDE]|60|7[BCD]|[89A-F][0-9A-F]))+)+$';
/** A dot segment, also with a parameter. */
const FORBIDDEN_PREFIX_PATTERN = '/[.][.]?(;|%3B|/|$)';

/** The annotations for paths, in the order in which they are parsed. The parser has set `settings.httpPorts` before. */
export const HTTP_ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  'path-prefix': pathPrefixAnnotation(),
  'strip-prefix': stripPrefixAnnotation(),
};

function pathPrefixAnnotation(): Annotation {
  const grammar = {
    kind: 'path-prefix',
    pattern: PREFIX_PATTERN,
    forbiddenPattern: FORBIDDEN_PREFIX_PATTERN,
    maxLength: MAX_PREFIX_LENGTH,
    expected: `a path such as /shop or /api/v1 in its normal form: at most ${MAX_PREFIX_LENGTH} characters, no slash at the end, no empty segment, "." or "..", no query, and percent-encodings in upper case and only where they are needed (without this annotation, the Service gets all paths)`,
  } as const;
  const [pattern, forbidden] = [new RegExp(PREFIX_PATTERN), new RegExp(FORBIDDEN_PREFIX_PATTERN)];
  return {
    grammar,
    parse: (pathPrefix, { httpPorts }) => {
      if (pathPrefix.length > MAX_PREFIX_LENGTH || !pattern.test(pathPrefix) || forbidden.test(pathPrefix))
        return `is not allowed; use ${grammar.expected}`;
      return httpPorts === undefined
        ? 'can be honoured only at a port where the proxies read HTTP requests; set appProtocol: http at a TCP port, or remove this annotation'
        : { pathPrefix };
    },
  };
}

function stripPrefixAnnotation(): Annotation {
  const { grammar, parse } = oneOfAnnotation(['true', 'false'], (value) =>
    value === 'true' ? { stripPrefix: true } : {},
  );
  return {
    grammar,
    parse: (value, settings) => {
      const parsed = parse(value, settings);
      return value === 'true' && settings.pathPrefix === undefined
        ? `can be honoured only with a valid ${ANNOTATION_PREFIX}path-prefix; add that annotation, or remove this one`
        : parsed;
    },
  };
}
