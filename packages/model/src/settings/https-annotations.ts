// The annotations that lead clients of a Service with TLS termination from HTTP to HTTPS.
import { PLAIN_HTTP_PORT } from '../match/route.ts';
import { quote } from '../message-text.ts';
import type { ServiceObject } from '../snapshot.ts';
import { type Annotation, oneOfAnnotation, pattern } from './annotation-grammar.ts';
import { ANNOTATION_PREFIX, type ServiceSettings } from './service-settings.ts';
import { withTls } from './tls-annotations.ts';

const redirect = oneOfAnnotation(['true', 'false'], () => ({}));

/** The annotations for HTTPS. They are parsed after the TLS annotations. `withHttpsPolicy` applies them. */
export const HTTPS_ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  'https-redirect': {
    grammar: redirect.grammar,
    parse: (value, settings) => (value === 'true' ? withTls(redirect) : redirect).parse(value, settings),
  },
  'hsts-max-age': withTls(
    pattern(
      {
        pattern: '^[0-9]{1,9}$',
        maxLength: 9,
        expected: 'a whole number of seconds with at most 9 digits, such as 31536000 for a year',
      },
      (seconds, { tls }) => (tls === undefined ? {} : { tls: { ...tls, hstsMaxAgeSeconds: Number(seconds) } }),
    ),
  ),
};

const REDIRECT_ANNOTATION = `${ANNOTATION_PREFIX}https-redirect`;
const HSTS_ANNOTATION = `${ANNOTATION_PREFIX}hsts-max-age`;
const HTTPS_PORT = 443;
/**
 * Returns the settings with the port of HTTPS redirects. Adds messages to `mistakes` if the ports of the Service do not fit the
 * annotations. `settings` must contain the TLS ports and the HTTP ports.
 */
export function withHttpsPolicy(
  service: ServiceObject,
  settings: ServiceSettings,
  mistakes: string[],
): ServiceSettings {
  const { tls, httpPorts = [] } = settings;
  if (tls === undefined || tls.ports.length === 0) return settings;
  if (tls.hstsMaxAgeSeconds !== undefined && !tls.ports.some(({ port }) => httpPorts.includes(port)))
    mistakes.push(
      `annotation ${HSTS_ANNOTATION}: ${quote(service.annotations[HSTS_ANNOTATION] ?? '')} can be honoured only if TLS is terminated at a port with appProtocol: http; set appProtocol, or remove this annotation`,
    );
  if (!Object.hasOwn(service.annotations, REDIRECT_ANNOTATION) || service.annotations[REDIRECT_ANNOTATION] !== 'true')
    return settings;
  if (!httpPorts.includes(PLAIN_HTTP_PORT)) {
    mistakes.push(
      `annotation ${REDIRECT_ANNOTATION}: "true" can be honoured only if the Service has a port 80/TCP with appProtocol: http; add the port or its appProtocol, or remove this annotation`,
    );
    return settings;
  }
  const httpsPort = tls.ports.find(({ port }) => port === HTTPS_PORT) ?? tls.ports[0];
  return { ...settings, tls: { ...tls, httpsRedirectPort: httpsPort?.port ?? HTTPS_PORT } };
}
