// The annotations `weir.dev/…` of a Service: one line for each that this version honours. A value that is not allowed
// refuses, and so does a name that is not here: to ignore, say, a client CA would open a Service.
import { parseHost } from '../match/hosts.ts';
import { quote, shorten } from '../message-text.ts';
import { HEALTH_ANNOTATIONS } from './health-annotations.ts';
import { parseDuration, parseQuantity } from './quantity.ts';
import type { Algorithm, ServiceLimits, ServiceSettings } from './service-settings.ts';
import { ANNOTATION_PREFIX } from './service-settings.ts';
import { TLS_ANNOTATIONS } from './tls-annotations.ts';

/** Part of the settings; or what is wrong and what is allowed, to be said after the value. */
type ParseValue = (value: string, settings: ServiceSettings) => Partial<ServiceSettings> | string;

/** Parsed in this order, so that one may build on another. */
const ANNOTATIONS: Readonly<Record<string, ParseValue>> = {
  ignore: oneOf(['true', 'false'], () => ({})),
  algorithm: oneOf<Algorithm>(['least-connections', 'round-robin', 'random', 'maglev', 'first'], (algorithm) => ({
    algorithm,
  })),
  'connect-timeout': duration({ mostMs: 300_000 }, (connectTimeoutMs) => ({ connectTimeoutMs })),
  'drain-timeout': duration({ mostMs: 86_400_000 }, (drainTimeoutMs) => ({ drainTimeoutMs })),
  'idle-timeout': duration({ mostMs: 86_400_000 }, (ms) => ({ idleTimeoutMs: ms, udpIdleTimeoutMs: ms })),
  'proxy-protocol': oneOf(['v1', 'v2'], (proxyProtocol) => ({ proxyProtocol })),
  'tls-passthrough': oneOf(['true', 'false'], (value) => ({ tlsPassthrough: value === 'true' })),
  ...TLS_ANNOTATIONS,
  hosts: parseHosts,
  ...HEALTH_ANNOTATIONS,
  'max-connections': limitOf('connections', 'connections such as 1000'),
  'max-connections-per-client': limitOf('connectionsPerClient', 'connections such as 20'),
  'in-bits-per-second': limitOf('inBitsPerSecond', 'bits such as 10M, 1.5G or 1Gi'),
  'out-bits-per-second': limitOf('outBitsPerSecond', 'bits such as 10M, 1.5G or 1Gi'),
  pool: parsePool,
  nodes: parseNodes,
};

const ANNOTATION_NAMES: readonly string[] = Object.keys(ANNOTATIONS);

/** The settings with what the annotations (without their prefix) ask for; what is wrong goes into `mistakes`. */
export function applyAnnotations(
  settings: ServiceSettings,
  annotations: ReadonlyMap<string, string>,
  mistakes: string[],
): ServiceSettings {
  const known = ANNOTATION_NAMES.filter((name) => annotations.has(name));
  const unknown = [...annotations.keys()].filter((name) => !Object.hasOwn(ANNOTATIONS, name)).sort();
  for (const name of [...known, ...unknown]) {
    const value = annotations.get(name) ?? '';
    const parse = Object.hasOwn(ANNOTATIONS, name) ? ANNOTATIONS[name] : undefined;
    const parsed = parse?.(value, settings) ?? unknownText();
    if (typeof parsed === 'string')
      mistakes.push(`annotation ${ANNOTATION_PREFIX}${shorten(name)}: ${quote(value)} ${parsed}`);
    else settings = { ...settings, ...parsed };
  }
  return settings;
}

function unknownText(): string {
  return `cannot be honoured: this version knows ${[...ANNOTATION_NAMES].sort().join(', ')}; remove the annotation`;
}

function oneOf<T extends string>(allowed: readonly T[], settings: (value: T) => Partial<ServiceSettings>): ParseValue {
  return (value) => {
    const found = allowed.find((each) => each === value);
    return found === undefined ? `is not allowed; use one of ${allowed.join(', ')}` : settings(found);
  };
}

function duration(
  { mostMs }: { readonly mostMs: number },
  settings: (ms: number) => Partial<ServiceSettings>,
): ParseValue {
  return (value) => {
    const ms = parseDuration(value);
    return ms === undefined || ms < 1 || ms > mostMs
      ? `is not allowed; use a duration from 1ms to ${mostMs / 1000}s, such as 5s or 10m`
      : settings(ms);
  };
}

/** Tenants write these: a longer text must cost nothing. */
const MAX_QUANTITY_LENGTH = 40;

/** A whole number of something, as a Quantity; 0 is none at all. */
function limitOf(name: keyof ServiceLimits, example: string): ParseValue {
  return (value, { limits }) => {
    const reading = value.length > MAX_QUANTITY_LENGTH ? undefined : parseQuantity(value);
    return reading?.kind === 'whole'
      ? { limits: { ...limits, [name]: reading.value } }
      : `is not allowed; use a whole number of ${example}`;
  };
}

const POOL_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** As the value of the label `weir.dev/pool`. */
function parsePool(value: string): Partial<ServiceSettings> | string {
  return POOL_NAME.test(value)
    ? { pool: value }
    : 'is not allowed; use the name of a node pool: at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit';
}

const MAX_NODES = 16;

function parseNodes(value: string): Partial<ServiceSettings> | string {
  const nodes = /^\d{1,2}$/.test(value) ? Number(value) : 0;
  return nodes >= 1 && nodes <= MAX_NODES ? { nodes } : `is not allowed; use a whole number from 1 to ${MAX_NODES}`;
}

/** Of the longest names no more fit into the annotations of an object (256 KiB); of short ones a table of them for each worker. */
const MAX_HOSTS = 1_000;

/** Blanks around a host are allowed; an empty part of the list is a mistake. */
function parseHosts(value: string, { tlsPassthrough, tls }: ServiceSettings): Partial<ServiceSettings> | string {
  const parts = value.split(',');
  if (parts.length > MAX_HOSTS)
    return `is not allowed: ${parts.length} hosts are too many: a Service may have at most ${MAX_HOSTS}; use wildcards such as *.example.com, or make several Services`;
  const texts = parts.map((text) => text.trim());
  const hosts = texts.map(parseHost);
  const wrong = hosts.indexOf(undefined);
  if (wrong >= 0) {
    return `is not allowed: ${quote(texts[wrong] ?? '')} is no host; use names such as shop.example.com or *.example.com, comma separated, other scripts as xn--…`;
  }
  if (!tlsPassthrough && tls === undefined)
    return `can be honoured only with ${ANNOTATION_PREFIX}tls-passthrough: "true" or ${ANNOTATION_PREFIX}tls-secret; add one of them, or remove this annotation`;
  return { hosts: [...new Set(hosts as string[])] };
}
