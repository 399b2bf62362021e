// What a Service asks for, parsed strictly: one wrong value refuses all of it, so that nothing is served with a default
// in place of what was meant.
import { type Cidr, parseCidr } from '../match/cidr.ts';
import type { ServiceObject } from '../snapshot.ts';
import type { Algorithm, ServiceSettings } from '../table/entry.ts';
import { parseDuration } from './duration.ts';
import { quoted } from './text.ts';

export const ANNOTATION_PREFIX = 'weir.dev/';
const LEGACY_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';

export type ParsedSettings =
  | { readonly kind: 'settings'; readonly settings: ServiceSettings }
  /** Each names annotation or field, value, and what is allowed. */
  | { readonly kind: 'invalid'; readonly mistakes: readonly string[] };

const DEFAULTS: ServiceSettings = {
  algorithm: 'least-connections',
  connectTimeoutMs: 5_000,
  idleTimeoutMs: 600_000,
  drainTimeoutMs: 30_000,
  sourceRanges: [],
  affinity: { kind: 'none' },
};

/** The settings of a Service, or every mistake in them. */
export function settingsFor(service: ServiceObject): ParsedSettings {
  const mistakes: string[] = [];
  let settings: ServiceSettings = DEFAULTS;
  for (const [annotation, value] of Object.entries(service.annotations).sort()) {
    if (!annotation.startsWith(ANNOTATION_PREFIX)) continue;
    const parsed = parseAnnotation(annotation.slice(ANNOTATION_PREFIX.length), value);
    if (typeof parsed === 'string') mistakes.push(`annotation ${annotation}: ${quoted(value)} ${parsed}`);
    else settings = { ...settings, ...parsed };
  }
  settings = { ...settings, sourceRanges: rangesFor(service, mistakes), affinity: affinityFor(service) };
  return mistakes.length > 0 ? { kind: 'invalid', mistakes } : { kind: 'settings', settings };
}

/** Part of the settings, or what is wrong and what is allowed. */
type ParseAnnotation = (value: string) => Partial<ServiceSettings> | string;

const ALGORITHMS: readonly Algorithm[] = ['least-connections', 'round-robin'];

const ANNOTATIONS: Readonly<Record<string, ParseAnnotation>> = {
  ignore: (value) => (value === 'true' || value === 'false' ? {} : 'is not allowed; use "true" or "false"'),
  algorithm: (value) => {
    const algorithm = ALGORITHMS.find((known) => known === value);
    return algorithm === undefined ? `is not allowed; use one of ${ALGORITHMS.join(', ')}` : { algorithm };
  },
  'connect-timeout': duration('connectTimeoutMs', 300_000),
  'idle-timeout': duration('idleTimeoutMs', 86_400_000),
};

function duration(field: 'connectTimeoutMs' | 'idleTimeoutMs', most: number): ParseAnnotation {
  return (value) => {
    const milliseconds = parseDuration(value);
    return milliseconds === undefined || milliseconds < 1 || milliseconds > most
      ? `is not allowed; use a duration from 1ms to ${most / 1000}s, such as 5s or 10m`
      : { [field]: milliseconds };
  };
}

/** An annotation that this version does not honour is refused: to ignore, say, a client CA would open a Service. */
function parseAnnotation(name: string, value: string): Partial<ServiceSettings> | string {
  const parse = Object.hasOwn(ANNOTATIONS, name) ? ANNOTATIONS[name] : undefined;
  if (parse === undefined) {
    return `cannot be honoured: this version knows ${Object.keys(ANNOTATIONS).sort().join(', ')}; remove the annotation`;
  }
  return parse(value);
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

function affinityFor(service: ServiceObject): ServiceSettings['affinity'] {
  const seconds = service.clientIpAffinitySeconds;
  return seconds === null ? { kind: 'none' } : { kind: 'client-ip', timeoutMs: seconds * 1000 };
}
