// The annotations `weir.dev/…` of a Service. A Service with an invalid value or an unknown annotation is refused. Otherwise a misspelt
// annotation for client CAs, for example, would leave the Service open to every client.
import { closestName } from '../closest-name.ts';
import { HOST_GRAMMAR, parseHost } from '../match/hosts.ts';
import { quote, shorten } from '../message-text.ts';
import { MAX_NODES_PER_SERVICE } from '../policy.ts';
import {
  type Annotation,
  type AnnotationGrammar,
  durationAnnotation,
  integerAnnotation,
  oneOfAnnotation,
  pattern,
  quantity,
} from './annotation-grammar.ts';
import { HEALTH_ANNOTATIONS } from './health-annotations.ts';
import { HTTP_ANNOTATIONS } from './http-annotations.ts';
import { HTTPS_ANNOTATIONS } from './https-annotations.ts';
import { REQUEST_ANNOTATIONS } from './request-annotations.ts';
import type { Algorithm, ServiceLimits, ServiceSettings } from './service-settings.ts';
import { ANNOTATION_PREFIX } from './service-settings.ts';
import { TLS_ANNOTATIONS } from './tls-annotations.ts';

const ALGORITHMS: readonly Algorithm[] = ['least-connections', 'round-robin', 'random', 'maglev', 'first'];
const MAX_CONNECT_TIMEOUT_MS = 300_000;
const MAX_TIMEOUT_MS = 86_400_000;
/**
 * The maximum number of hosts of a Service. Bounds the size of the host index of each worker. (All annotations of an object together hold
 * at most 256 KiB, or about 1,000 hosts of the greatest length.)
 */
const MAX_HOSTS = 1_000;

/**
 * The annotations by name without prefix. They are parsed in this order, because an annotation may depend on the settings of an earlier
 * annotation.
 */
const ANNOTATIONS: Readonly<Record<string, Annotation>> = {
  ignore: oneOfAnnotation(['true', 'false'], () => ({})),
  algorithm: oneOfAnnotation(ALGORITHMS, (algorithm) => ({ algorithm })),
  'connect-timeout': durationAnnotation({ maxMs: MAX_CONNECT_TIMEOUT_MS }, (connectTimeoutMs) => ({
    connectTimeoutMs,
  })),
  'drain-timeout': durationAnnotation({ maxMs: MAX_TIMEOUT_MS }, (drainTimeoutMs) => ({ drainTimeoutMs })),
  'idle-timeout': durationAnnotation({ maxMs: MAX_TIMEOUT_MS }, (ms) => ({ idleTimeoutMs: ms, udpIdleTimeoutMs: ms })),
  'proxy-protocol': oneOfAnnotation(['v1', 'v2'], (proxyProtocol) => ({ proxyProtocol })),
  'tls-passthrough': oneOfAnnotation(['true', 'false'], (value) => ({ tlsPassthrough: value === 'true' })),
  ...TLS_ANNOTATIONS,
  ...HTTPS_ANNOTATIONS,
  hosts: hostsAnnotation(),
  ...HTTP_ANNOTATIONS,
  ...REQUEST_ANNOTATIONS,
  ...HEALTH_ANNOTATIONS,
  'max-connections': limit('connections', 'connections such as 1000'),
  'max-connections-per-client': limit('connectionsPerClient', 'connections such as 20'),
  'new-connections-per-second': limit('newConnectionsPerSecond', 'connections such as 100'),
  'new-connections-per-second-per-client': limit('newConnectionsPerSecondPerClient', 'connections such as 10'),
  'in-bits-per-second': limit('inBitsPerSecond', 'bits such as 10M, 1.5G or 1Gi'),
  'out-bits-per-second': limit('outBitsPerSecond', 'bits such as 10M, 1.5G or 1Gi'),
  // A pool has the grammar of a label's value, because the pool of a node is the value of its label `weir.dev/pool`.
  pool: pattern(
    {
      pattern: '^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$',
      maxLength: 63,
      expected:
        'the name of a node pool: at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit',
    },
    (pool) => ({ pool }),
  ),
  nodes: integerAnnotation({ min: 1, max: MAX_NODES_PER_SERVICE }, (nodes) => ({ nodes })),
};

const ANNOTATION_NAMES: readonly string[] = Object.keys(ANNOTATIONS);

/** The grammar of every annotation, by name without prefix. */
export function annotationGrammars(): Readonly<Record<string, AnnotationGrammar>> {
  return Object.fromEntries(Object.entries(ANNOTATIONS).map(([name, { grammar }]) => [name, grammar]));
}

/** Returns the settings as changed by `annotations` (by name without prefix). Adds a message to `mistakes` for each invalid annotation. */
export function applyAnnotations(
  settings: ServiceSettings,
  annotations: ReadonlyMap<string, string>,
  mistakes: string[],
): ServiceSettings {
  const known = ANNOTATION_NAMES.filter((name) => annotations.has(name));
  const unknown = [...annotations.keys()].filter((name) => !Object.hasOwn(ANNOTATIONS, name)).sort();
  for (const name of [...known, ...unknown]) {
    const value = annotations.get(name) ?? '';
    const annotation = Object.hasOwn(ANNOTATIONS, name) ? ANNOTATIONS[name] : undefined;
    // The value of an unknown annotation does not matter, and the message has a maximum length.
    if (annotation === undefined) {
      mistakes.push(`annotation ${ANNOTATION_PREFIX}${shorten(name)} ${unknownText(name)}`);
      continue;
    }
    const parsed = annotation.parse(value, settings);
    if (typeof parsed === 'string')
      mistakes.push(`annotation ${ANNOTATION_PREFIX}${shorten(name)}: ${quote(value)} ${parsed}`);
    else settings = { ...settings, ...parsed };
  }
  return settings;
}

function unknownText(name: string): string {
  const meant = closestName(name, ANNOTATION_NAMES);
  if (meant !== undefined) return `cannot be honoured: did you mean ${ANNOTATION_PREFIX}${meant}?`;
  return `cannot be honoured: this version knows ${[...ANNOTATION_NAMES].sort().join(', ')}; remove the annotation`;
}

function limit(name: keyof ServiceLimits, example: string): Annotation {
  return quantity(example, (value, { limits }) => ({ limits: { ...limits, [name]: value } }));
}

/** Returns the annotation for hosts. Allows blanks around a host, but rejects an empty item of the list. */
function hostsAnnotation(): Annotation {
  const grammar = {
    kind: 'hosts',
    ...HOST_GRAMMAR,
    maxCount: MAX_HOSTS,
    expected:
      'names such as shop.example.com or *.example.com, separated by commas, with international names in punycode (xn--…)',
  } as const;
  return {
    grammar,
    parse: (value, { tlsPassthrough, tls, httpPorts }) => {
      const parts = value.split(',');
      if (parts.length > MAX_HOSTS)
        return `is not allowed: ${parts.length} hosts are too many: a Service may have at most ${MAX_HOSTS}; use wildcards such as *.example.com, or make several Services`;
      const texts = parts.map((text) => text.trim());
      const hosts = texts.map(parseHost);
      const invalid = hosts.indexOf(undefined);
      if (invalid >= 0) return `is not allowed: ${quote(texts[invalid] ?? '')} is not a host; use ${grammar.expected}`;
      if (!tlsPassthrough && tls === undefined && httpPorts === undefined)
        return `can be honoured only where the proxies can read the host that a client asks for; set appProtocol: http at a TCP port, add ${ANNOTATION_PREFIX}tls-passthrough: "true" or ${ANNOTATION_PREFIX}tls-secret, or remove this annotation`;
      return { hosts: [...new Set(hosts as string[])] };
    },
  };
}
