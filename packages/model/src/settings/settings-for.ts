// What a Service asks for, parsed strictly: one wrong value refuses all of it, so that nothing is served with a default
// in place of what was meant.
import { type Cidr, parseCidr } from '../match/cidr.ts';
import type { ServiceObject } from '../snapshot.ts';
import { quoted } from '../translate/text.ts';
import { ANNOTATION_PREFIX, applyAnnotations } from './annotations.ts';
import { type Affinity, DEFAULT_SERVICE_SETTINGS, type ServiceSettings } from './service-settings.ts';
import { tcpOnlyMistakes } from './tcp-only.ts';
import { zonePreferenceOf } from './zone-preference.ts';

const LEGACY_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';

export type ParsedSettings =
  | { readonly kind: 'settings'; readonly settings: ServiceSettings }
  /** Each names annotation or field, value, and what is allowed. */
  | { readonly kind: 'invalid'; readonly mistakes: readonly string[] };

/** The settings of a Service, or every mistake in them. */
export function settingsFor(service: ServiceObject): ParsedSettings {
  const mistakes: string[] = [];
  const own = Object.entries(service.annotations).filter(([name]) => name.startsWith(ANNOTATION_PREFIX));
  const annotations = new Map(own.map(([name, value]) => [name.slice(ANNOTATION_PREFIX.length), value]));
  const settings: ServiceSettings = {
    ...applyAnnotations(DEFAULT_SERVICE_SETTINGS, annotations, mistakes),
    sourceRanges: rangesFor(service, mistakes),
    affinity: affinityFor(service),
    preferSameZone: zonePreferenceOf(service) !== 'none',
  };
  mistakes.push(...tcpOnlyMistakes(service, settings));
  return mistakes.length > 0 ? { kind: 'invalid', mistakes } : { kind: 'settings', settings };
}

/** The field wins over the legacy annotation; blanks around a range are allowed. */
function rangesFor(service: ServiceObject, mistakes: string[]): readonly string[] {
  const legacy = Object.hasOwn(service.annotations, LEGACY_RANGES) ? service.annotations[LEGACY_RANGES] : undefined;
  const isField = service.sourceRanges.length > 0;
  const where = isField ? 'spec.loadBalancerSourceRanges' : `annotation ${LEGACY_RANGES}`;
  // Blank text asks for nothing; an empty part of a list is a mistake, not "everybody".
  const texts = isField ? service.sourceRanges : legacy?.trim() ? legacy.split(',') : [];
  const ranges: Cidr[] = [];
  for (const text of texts) {
    const cidr = parseCidr(text);
    if (cidr === undefined) mistakes.push(`${where}: ${quoted(text)} is not a CIDR such as 10.0.0.0/8 or fd00::/8`);
    else ranges.push(cidr);
  }
  return [...new Set(ranges.map((range) => range.text))].sort();
}

function affinityFor(service: ServiceObject): Affinity {
  const seconds = service.clientIpAffinitySeconds;
  return seconds === null ? { kind: 'none' } : { kind: 'client-ip', timeoutMs: seconds * 1000 };
}
