import { parseCidr } from '../match/address.ts';
import { quote } from '../message-text.ts';
import type { ServiceObject } from '../snapshot.ts';
import { applyAnnotations } from './annotations.ts';
import { httpPortsOf } from './http-annotations.ts';
import { withHttpsPolicy } from './https-annotations.ts';
import {
  type Affinity,
  ANNOTATION_PREFIX,
  DEFAULT_SERVICE_SETTINGS,
  type ServiceSettings,
} from './service-settings.ts';
import { withTlsPorts } from './tls-annotations.ts';
import { zonePreferenceOf } from './zone-preference.ts';

// Parses the settings of a Service strictly: one wrong value makes all settings invalid, so that no Service is served with a default that
// its owner did not want.
const LEGACY_SOURCE_RANGES_ANNOTATION = 'service.beta.kubernetes.io/load-balancer-source-ranges';

export type ParsedSettings =
  | { readonly kind: 'settings'; readonly settings: ServiceSettings }
  /** Each mistake names the annotation or field, its value, and what is allowed. */
  | { readonly kind: 'invalid'; readonly mistakes: readonly string[] };

/**
 * Returns the settings of a Service, or every mistake in the settings. Caches the result for each `ServiceObject`, because most
 * translations of a Service follow a change of another object.
 */
export function serviceSettingsFor(service: ServiceObject): ParsedSettings {
  const known = PARSED_BY_SERVICE.get(service);
  if (known !== undefined) return known;
  const parsed = parseSettings(service);
  if (parsed.kind === 'settings' || parsed.mistakes.length <= MAX_CACHED_MISTAKES)
    PARSED_BY_SERVICE.set(service, parsed);
  return parsed;
}

/** Returns a copy of a Service with other ports. `serviceSettingsFor` returns the settings of the original for the copy. */
export function withSettingsOf(service: ServiceObject, change: Pick<ServiceObject, 'ports'>): ServiceObject {
  const copy = { ...service, ...change };
  PARSED_BY_SERVICE.set(copy, serviceSettingsFor(service));
  return copy;
}

const PARSED_BY_SERVICE = new WeakMap<ServiceObject, ParsedSettings>();
/**
 * The most mistakes of a cached result. Results with more mistakes are not cached, because a message takes much more memory than the wrong
 * text that the message describes.
 */
const MAX_CACHED_MISTAKES = 100;

function parseSettings(service: ServiceObject): ParsedSettings {
  const mistakes: string[] = [];
  const own = Object.entries(service.annotations).filter(([name]) => name.startsWith(ANNOTATION_PREFIX));
  const annotations = new Map(own.map(([name, value]) => [name.slice(ANNOTATION_PREFIX.length), value]));
  const defaults: ServiceSettings = { ...DEFAULT_SERVICE_SETTINGS, ...httpPortsOf(service) };
  const withPorts: ServiceSettings = {
    ...withTlsPorts(service, applyAnnotations(defaults, annotations, mistakes), mistakes),
    sourceRanges: sourceRangesFor(service, mistakes),
    affinity: affinityFor(service),
    preferSameZone: zonePreferenceOf(service) !== 'none',
  };
  const settings = withHttpsPolicy(service, withPorts, mistakes);
  mistakes.push(...tcpOnlyMistakes(service, settings));
  return mistakes.length > 0 ? { kind: 'invalid', mistakes } : { kind: 'settings', settings };
}

/**
 * The most source ranges of a Service; the networks of one country are a few thousand. Measured with 10,000 IPv6 ranges, for any number of
 * ports: the ranges take 0.5 MB in the table and 1 MB in each thread of a proxy. After a change, the first client waits 7 ms in a worker,
 * or 23 ms in a worker that has just started. One Service may delay other connections by at most 50 ms.
 */
const MAX_SOURCE_RANGES = 10_000;

interface ParsedRanges {
  readonly ranges: readonly string[];
  readonly mistakes: readonly string[];
}

/** The parsed ranges, by the list or the annotations that contain them, because sources keep these objects while they do not change. */
const PARSED_RANGES = new WeakMap<object, ParsedRanges>();

function sourceRangesFor(service: ServiceObject, mistakes: string[]): readonly string[] {
  const origin = service.sourceRanges.length > 0 ? service.sourceRanges : service.annotations;
  const parsed = PARSED_RANGES.get(origin) ?? parseSourceRanges(service);
  if (parsed.mistakes.length <= MAX_CACHED_MISTAKES) PARSED_RANGES.set(origin, parsed);
  for (const mistake of parsed.mistakes) mistakes.push(mistake);
  return parsed.ranges;
}

/** Returns the source ranges of the field, or of the legacy annotation if the field is empty. Allows blanks around a range. */
function parseSourceRanges(service: ServiceObject): ParsedRanges {
  const mistakes: string[] = [];
  const legacy = Object.hasOwn(service.annotations, LEGACY_SOURCE_RANGES_ANNOTATION)
    ? service.annotations[LEGACY_SOURCE_RANGES_ANNOTATION]
    : undefined;
  const isField = service.sourceRanges.length > 0;
  const where = isField ? 'spec.loadBalancerSourceRanges' : `annotation ${LEGACY_SOURCE_RANGES_ANNOTATION}`;
  // A blank annotation sets no ranges. An empty item of a list is a mistake, because an empty item must not admit every client.
  const texts = isField ? service.sourceRanges : legacy?.trim() ? legacy.split(',') : [];
  if (texts.length > MAX_SOURCE_RANGES) {
    const advice = `a Service may have at most ${MAX_SOURCE_RANGES}; merge adjacent ranges, or create several Services`;
    mistakes.push(`${where}: ${texts.length} ranges are too many: ${advice}`);
    return { ranges: [], mistakes };
  }
  const ranges = new Set<string>();
  for (const text of texts) {
    const cidr = parseCidr(text);
    if (cidr === undefined) mistakes.push(`${where}: ${quote(text)} is not a CIDR such as 10.0.0.0/8 or fd00::/8`);
    else ranges.add(cidr.text);
  }
  return { ranges: [...ranges].sort(), mistakes };
}

function affinityFor(service: ServiceObject): Affinity {
  const seconds = service.clientIpAffinitySeconds;
  return seconds === null ? { kind: 'none' } : { kind: 'client-ip', timeoutMs: seconds * 1000 };
}

// Annotations that affect only TCP connections, each with a function that says whether the settings use the annotation. On a Service with
// only UDP ports such an annotation would have no effect, although its author expects it to identify or refuse clients.
const TCP_ONLY_ANNOTATIONS: Readonly<Record<string, (settings: ServiceSettings) => boolean>> = {
  'proxy-protocol': ({ proxyProtocol }) => proxyProtocol !== null,
  'tls-passthrough': ({ tlsPassthrough }) => tlsPassthrough,
  'tls-secret': ({ tls }) => tls !== undefined,
  hosts: ({ hosts }) => hosts.length > 0,
};

/** Returns one mistake for each annotation that a Service with only UDP ports sets although the annotation works only for TCP. */
export function tcpOnlyMistakes({ ports, annotations }: ServiceObject, settings: ServiceSettings): string[] {
  const isUdp = ports.some(({ protocol }) => protocol === 'UDP') && ports.every(({ protocol }) => protocol !== 'TCP');
  if (!isUdp) return [];
  return Object.entries(TCP_ONLY_ANNOTATIONS).flatMap(([name, isUsed]) => {
    const annotation = `${ANNOTATION_PREFIX}${name}`;
    return isUsed(settings)
      ? [
          `annotation ${annotation}: ${quote(annotations[annotation] ?? '')} can be honoured only for TCP, and the Service has only UDP ports; remove the annotation, or add a TCP port`,
        ]
      : [];
  });
}
