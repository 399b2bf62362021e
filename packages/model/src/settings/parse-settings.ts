import { parseCidr } from '../match/cidr.ts';
import { quote } from '../message-text.ts';
import type { ServiceObject } from '../snapshot.ts';
import { applyAnnotations } from './annotations.ts';
import {
  type Affinity,
  ANNOTATION_PREFIX,
  DEFAULT_SERVICE_SETTINGS,
  type ServiceSettings,
} from './service-settings.ts';
import { withTlsPorts } from './tls-annotations.ts';
import { zonePreferenceOf } from './zone-preference.ts';

// What a Service asks for, parsed strictly: one wrong value refuses all of it, so that nothing is served with a default
// in place of what was meant.
const LEGACY_SOURCE_RANGES_ANNOTATION = 'service.beta.kubernetes.io/load-balancer-source-ranges';

export type ParsedSettings =
  | { readonly kind: 'settings'; readonly settings: ServiceSettings }
  /** Each names annotation or field, value, and what is allowed. */
  | { readonly kind: 'invalid'; readonly mistakes: readonly string[] };

/** The settings of a Service, or every mistake in them. The same object is read once: others touch it more often than it changes. */
export function serviceSettingsFor(service: ServiceObject): ParsedSettings {
  const known = PARSED_BY_SERVICE.get(service);
  if (known !== undefined) return known;
  const parsed = parseSettings(service);
  if (parsed.kind === 'settings' || parsed.mistakes.length <= MAX_CACHED_MISTAKES)
    PARSED_BY_SERVICE.set(service, parsed);
  return parsed;
}

const PARSED_BY_SERVICE = new WeakMap<ServiceObject, ParsedSettings>();
/** Ten thousand mistakes are quickly written, and told in far more bytes than they are made with. */
const MAX_CACHED_MISTAKES = 100;

function parseSettings(service: ServiceObject): ParsedSettings {
  const mistakes: string[] = [];
  const own = Object.entries(service.annotations).filter(([name]) => name.startsWith(ANNOTATION_PREFIX));
  const annotations = new Map(own.map(([name, value]) => [name.slice(ANNOTATION_PREFIX.length), value]));
  const settings: ServiceSettings = {
    ...withTlsPorts(service, applyAnnotations(DEFAULT_SERVICE_SETTINGS, annotations, mistakes), mistakes),
    sourceRanges: sourceRangesFor(service, mistakes),
    affinity: affinityFor(service),
    preferSameZone: zonePreferenceOf(service) !== 'none',
  };
  mistakes.push(...tcpOnlyMistakes(service, settings));
  return mistakes.length > 0 ? { kind: 'invalid', mistakes } : { kind: 'settings', settings };
}

/**
 * The networks of a country are some thousands. Measured with so many, IPv6 being the dearest: half a megabyte in the table, 7 ms of a
 * worker (23 in one that has just started) when the first client comes after a change of them, and a megabyte in each thread of a
 * proxy; however many ports the Service has. Nobody else's connections may wait 50 ms for one Service.
 */
const MAX_SOURCE_RANGES = 10_000;

/** The field wins over the legacy annotation; blanks around a range are allowed. */
function sourceRangesFor(service: ServiceObject, mistakes: string[]): readonly string[] {
  const legacy = Object.hasOwn(service.annotations, LEGACY_SOURCE_RANGES_ANNOTATION)
    ? service.annotations[LEGACY_SOURCE_RANGES_ANNOTATION]
    : undefined;
  const isField = service.sourceRanges.length > 0;
  const where = isField ? 'spec.loadBalancerSourceRanges' : `annotation ${LEGACY_SOURCE_RANGES_ANNOTATION}`;
  // Blank text asks for nothing; an empty part of a list is a mistake, not "everybody".
  const texts = isField ? service.sourceRanges : legacy?.trim() ? legacy.split(',') : [];
  if (texts.length > MAX_SOURCE_RANGES) {
    const most = `a Service may have at most ${MAX_SOURCE_RANGES}; write neighbouring ones as one, or make several Services`;
    mistakes.push(`${where}: ${texts.length} ranges are too many: ${most}`);
    return [];
  }
  const ranges = new Set<string>();
  for (const text of texts) {
    const cidr = parseCidr(text);
    if (cidr === undefined) mistakes.push(`${where}: ${quote(text)} is not a CIDR such as 10.0.0.0/8 or fd00::/8`);
    else ranges.add(cidr.text);
  }
  return [...ranges].sort();
}

function affinityFor(service: ServiceObject): Affinity {
  const seconds = service.clientIpAffinitySeconds;
  return seconds === null ? { kind: 'none' } : { kind: 'client-ip', timeoutMs: seconds * 1000 };
}

// What concerns TCP connections only. On a Service of UDP ports alone it would do nothing: who set it believes that clients
// are told to endpoints, or kept out.
const TCP_ONLY_ANNOTATIONS: Readonly<Record<string, (settings: ServiceSettings) => boolean>> = {
  'proxy-protocol': ({ proxyProtocol }) => proxyProtocol !== null,
  'tls-passthrough': ({ tlsPassthrough }) => tlsPassthrough,
  'tls-secret': ({ tls }) => tls !== undefined,
  hosts: ({ hosts }) => hosts.length > 0,
};

/** What is asked for of TCP in vain: one text for each annotation, with what to do. */
export function tcpOnlyMistakes({ ports, annotations }: ServiceObject, settings: ServiceSettings): string[] {
  const isUdp = ports.some(({ protocol }) => protocol === 'UDP') && ports.every(({ protocol }) => protocol !== 'TCP');
  if (!isUdp) return [];
  return Object.entries(TCP_ONLY_ANNOTATIONS).flatMap(([name, isAskedFor]) => {
    const annotation = `${ANNOTATION_PREFIX}${name}`;
    return isAskedFor(settings)
      ? [
          `annotation ${annotation}: ${quote(annotations[annotation] ?? '')} can be honoured only for TCP, and the Service has only UDP ports; remove the annotation, or add a TCP port`,
        ]
      : [];
  });
}
