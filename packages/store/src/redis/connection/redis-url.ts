// The three forms of a Redis URL, as text and as what they mean. Pure.
import { type HostPort, parseHostPort } from '@weir/runtime';

/** How the server that serves us is found. */
export type RedisTopology =
  | { readonly kind: 'single'; readonly at: HostPort }
  | { readonly kind: 'sentinel'; readonly sentinels: readonly HostPort[]; readonly primary: string }
  | { readonly kind: 'cluster'; readonly seeds: readonly HostPort[] };

export interface RedisUrl {
  readonly topology: RedisTopology;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  readonly tls: boolean;
}

export type RedisUrlResult =
  | { readonly kind: 'url'; readonly url: RedisUrl }
  /** `why` ends a sentence that begins with the URL. */
  | { readonly kind: 'wrong'; readonly why: string };

export const REDIS_URL_FORMAT: string =
  'redis://[USER:PASSWORD@]HOST[:PORT][/DB], redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]#PRIMARY or ' +
  'redis-cluster://[USER:PASSWORD@]HOST[:PORT],…; with rediss for TLS (percent-encode special characters)';

const SCHEME_PATTERN = /^redis(s?)(-sentinel|-cluster)?:\/\//;
const URL_REST_PATTERN = /^(?:([^/?#@]*)@)?([^/?#@]*)(?:\/(\d*))?(?:#([\w.-]+))?$/;

export function parseRedisUrl(text: string): RedisUrlResult {
  const wrong = (why: string): RedisUrlResult => ({ kind: 'wrong', why });
  const scheme = SCHEME_PATTERN.exec(text);
  if (scheme === null) return wrong(URL.canParse(text) ? 'does not begin with redis://' : 'is not a URL');
  const [begin, s, suffix] = scheme;
  const rest = URL_REST_PATTERN.exec(text.slice(begin.length));
  if (rest === null) return wrong(explainBadUrl(text.slice(begin.length)));
  const [, user, list = '', db, fragment] = rest;
  if (list === '') return wrong('names no host');
  const places = list.split(',').map((place) => parseHost(place, suffix === '-sentinel' ? 26_379 : 6_379));
  // not quoted: it may be a password that lost its place
  if (places.includes(undefined)) return wrong('names something as a host that is none');
  const known = places as HostPort[];
  const topology = topologyFor(suffix, known, { db, fragment });
  if (typeof topology === 'string') return wrong(topology);
  const [, name = '', password] = /^([^:]*)(?::(.*))?$/s.exec(user ?? '') ?? [];
  return {
    kind: 'url',
    url: { topology, username: decode(name), password: decode(password ?? ''), db: Number(db ?? 0), tls: s === 's' },
  };
}

interface UrlSuffix {
  readonly db: string | undefined;
  readonly fragment: string | undefined;
}

/** The place, or why there is none. */
function topologyFor(
  suffix: string | undefined,
  places: readonly HostPort[],
  { db, fragment }: UrlSuffix,
): RedisTopology | string {
  const texts = places.map(({ host, port }) => `${host} ${port}`);
  const twice = places.find((_, nth) => texts.indexOf(texts[nth] ?? '') !== nth);
  if (twice !== undefined) return `names ${twice.host}:${twice.port} twice`;
  if (suffix === '-sentinel') {
    if (fragment === undefined)
      return 'does not say which primary: its end has to be # and the name that the sentinels know';
    return { kind: 'sentinel', sentinels: places, primary: fragment };
  }
  if (fragment !== undefined) return 'has a query or a fragment';
  if (suffix === '-cluster') {
    if (Number(db ?? 0) !== 0) return 'names a database, of which a cluster has only the first';
    return { kind: 'cluster', seeds: places };
  }
  const [at, more] = places;
  if (at === undefined || more !== undefined)
    return 'names several hosts, for which there are redis-sentinel:// and redis-cluster://';
  return { kind: 'single', at };
}

function parseHost(text: string, port: number): HostPort | undefined {
  const whole = /^\[[^\]]*\]$|^[^:[\]]+$/.test(text) ? `${text}:${port}` : text;
  // no host has "_" in its name, but the containers of a developer have
  const place = parseHostPort(whole.replaceAll('_', '-'));
  if (place === undefined || place.port === 0) return undefined;
  return { host: whole.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''), port: place.port };
}

function explainBadUrl(rest: string): string {
  if (/[?#]/.test(rest)) return 'has a query or a fragment that means nothing here';
  if (/[/@].*@/.test(rest)) return 'has a "/" or "@" in its user or password that is not percent-encoded';
  return 'has a path that is not the number of a database';
}

function decode(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
