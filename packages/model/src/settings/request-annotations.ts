// The annotations that limit or log HTTP requests, bind clients to endpoints by a cookie, or set error pages. The parser has set
// `settings.httpPorts` before.
import { type Annotation, durationAnnotation, pattern, quantity } from './annotation-grammar.ts';
import type { ServiceSettings } from './service-settings.ts';
import { MAX_OBJECT_NAME_LENGTH, OBJECT_NAME_PATTERN } from './tls-annotations.ts';

const MAX_REQUEST_TIMEOUT_MS = 86_400_000;

/**
 * A cookie name is a token (RFC 6265, section 4.1.1). Browsers refuse a cookie whose name begins with `__Host-` or `__Secure-` and that was
 * set without TLS.
 */
const COOKIE_NAME = {
  pattern: '^_?[A-Za-z0-9!#$%&*+.^|~-][A-Za-z0-9!#$%&*+.^_|~-]*$',
  maxLength: 64,
  expected:
    'the name of a cookie such as shop-endpoint: at most 64 letters, digits and characters !#$%&*+.^_|~-, and no "__" at the start',
} as const;

const CONFIG_MAP_NAME = {
  pattern: `^${OBJECT_NAME_PATTERN}$`,
  maxLength: MAX_OBJECT_NAME_LENGTH,
  expected: 'the name of a ConfigMap in the namespace of the Service',
} as const;

const MILLION = 1_000_000;

const ACCESS_LOG: Annotation = pattern(
  {
    // A percentage has at most four digits behind the point, so it is a whole number per million.
    pattern: '^(false|(true|(100([.]0{1,4})?|[1-9]?[0-9]([.][0-9]{1,4})?)%)(,query)?)$',
    maxLength: 20,
    expected:
      'true, false, or the share of the requests and connections that are logged, such as 1% or 0.1%; add ,query (such as true,query) to log query strings of requests too',
  },
  accessLogFor,
);
const ACCESS_LOG_WITH_QUERY: Annotation = withHttp(ACCESS_LOG);

export const REQUEST_ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  'request-timeout': withHttp(
    durationAnnotation({ maxMs: MAX_REQUEST_TIMEOUT_MS }, (requestTimeoutMs) => ({ requestTimeoutMs })),
  ),
  'max-body-size': withHttp(quantity('bytes such as 500k or 10Mi', (maxBodyBytes) => ({ maxBodyBytes }))),
  'requests-per-second': withHttp(
    quantity('requests such as 100', (requestsPerSecond, { limits }) => ({ limits: { ...limits, requestsPerSecond } })),
  ),
  'sticky-cookie': withHttp(pattern(COOKIE_NAME, (stickyCookie) => ({ stickyCookie }))),
  'error-pages': withHttp(pattern(CONFIG_MAP_NAME, (errorPages) => ({ errorPages }))),
  'access-log': {
    grammar: ACCESS_LOG.grammar,
    parse: (value, settings) => (value.endsWith(',query') ? ACCESS_LOG_WITH_QUERY : ACCESS_LOG).parse(value, settings),
  },
};

function accessLogFor(value: string): Pick<ServiceSettings, 'accessLog'> {
  if (value === 'false') return {};
  const requestsPerMillion = value.startsWith('true') ? MILLION : Math.round(Number.parseFloat(value) * 10_000);
  if (requestsPerMillion === 0) return {};
  return { accessLog: { requestsPerMillion, ...(value.endsWith(',query') ? { hasQuery: true } : {}) } };
}

/** An annotation that is refused if the proxies read no HTTP requests for the Service. */
function withHttp({ grammar, parse }: Annotation): Annotation {
  return {
    grammar,
    parse: (value, settings) => {
      const parsed = parse(value, settings);
      return typeof parsed !== 'string' && settings.httpPorts === undefined
        ? 'can be honoured only at a port where the proxies read HTTP requests; set appProtocol: http at a TCP port, or remove this annotation'
        : parsed;
    },
  };
}
