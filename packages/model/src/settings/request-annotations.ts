// The annotations that limit HTTP requests, and that bind clients to endpoints by a cookie. `settings.httpPorts` is known when they are
// parsed.
import { type Annotation, durationAnnotation, pattern, quantity } from './annotation-grammar.ts';

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

export const REQUEST_ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  'request-timeout': withHttp(
    durationAnnotation({ maxMs: MAX_REQUEST_TIMEOUT_MS }, (requestTimeoutMs) => ({ requestTimeoutMs })),
  ),
  'max-body-size': withHttp(quantity('bytes such as 500k or 10Mi', (maxBodyBytes) => ({ maxBodyBytes }))),
  'requests-per-second': withHttp(
    quantity('requests such as 100', (requestsPerSecond, { limits }) => ({ limits: { ...limits, requestsPerSecond } })),
  ),
  'sticky-cookie': withHttp(pattern(COOKIE_NAME, (stickyCookie) => ({ stickyCookie }))),
};

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
