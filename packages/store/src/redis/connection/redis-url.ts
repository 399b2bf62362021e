// Parses the three kinds of Redis URLs: a single server, Sentinel and Cluster. Pure.
import { type HostPort, parseHostPort } from '@weir/runtime';

/** The servers in a Redis URL, and how to find the server among them that serves the fleet. */
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
  /** `reason` completes the sentence "the Redis URL …". */
  | { readonly kind: 'invalid'; readonly reason: string };

export const REDIS_URL_FORMAT: string =
  'redis://[USER:PASSWORD@]HOST[:PORT][/DB], redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]#PRIMARY or ' +
  'redis-cluster://[USER:PASSWORD@]HOST[:PORT],…; with rediss for TLS (percent-encode special characters)';

const SCHEME_PATTERN = /^redis(s?)(-sentinel|-cluster)?:\/\//;
const URL_REST_PATTERN = /^(?:([^/?#@]*)@)?([^/?#@]*)(?:\/(\d*))?(?:#([\w.-]+))?$/;

/**
 * Parses a URL in one of the formats of `REDIS_URL_FORMAT`. The `reason` for an invalid URL never quotes the URL, which may contain a
 * password.
 */
export function parseRedisUrl(text: string): RedisUrlResult {
  const invalid = (reason: string): RedisUrlResult => ({ kind: 'invalid', reason });
  const scheme = SCHEME_PATTERN.exec(text);
  if (scheme === null) return invalid(URL.canParse(text) ? 'does not begin with redis://' : 'is not a URL');
  const [prefix, s, suffix] = scheme;
  const rest = URL_REST_PATTERN.exec(text.slice(prefix.length));
  if (rest === null) return invalid(explainBadUrl(text.slice(prefix.length)));
  const [, user, list = '', db, fragment] = rest;
  if (list === '') return invalid('names no host');
  const hosts = list.split(',').map((host) => parseHost(host, suffix === '-sentinel' ? 26_379 : 6_379));
  // Does not quote the host, because the text may be a misplaced password.
  if (hosts.includes(undefined)) return invalid('has an invalid host');
  const topology = topologyFor(suffix, hosts as HostPort[], { db, fragment });
  if (typeof topology === 'string') return invalid(topology);
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

/** Returns the topology, or the reason why the URL is invalid. */
function topologyFor(
  suffix: string | undefined,
  hosts: readonly HostPort[],
  { db, fragment }: UrlSuffix,
): RedisTopology | string {
  const texts = hosts.map(({ host, port }) => `${host} ${port}`);
  const duplicate = hosts.find((_, index) => texts.indexOf(texts[index] ?? '') !== index);
  if (duplicate !== undefined) return `names ${duplicate.host}:${duplicate.port} twice`;
  if (suffix === '-sentinel') {
    if (fragment === undefined)
      return 'does not name the primary: the URL must end with # and the name by which the sentinels know the primary';
    return { kind: 'sentinel', sentinels: hosts, primary: fragment };
  }
  if (fragment !== undefined) return 'has a fragment (the text after #), which only redis-sentinel:// allows';
  if (suffix === '-cluster') {
    if (Number(db ?? 0) !== 0) return 'names a database other than 0, the only database of a cluster';
    return { kind: 'cluster', seeds: hosts };
  }
  const [at, second] = hosts;
  if (at === undefined || second !== undefined)
    return 'names several hosts, which only redis-sentinel:// and redis-cluster:// allow';
  return { kind: 'single', at };
}

function parseHost(text: string, defaultPort: number): HostPort | undefined {
  const withPort = /^\[[^\]]*\]$|^[^:[\]]+$/.test(text) ? `${text}:${defaultPort}` : text;
  // Allows "_", because names of containers often contain it, although host names must not.
  const parsed = parseHostPort(withPort.replaceAll('_', '-'));
  if (parsed === undefined || parsed.port === 0) return undefined;
  return { host: withPort.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''), port: parsed.port };
}

function explainBadUrl(rest: string): string {
  if (/[?#]/.test(rest)) return 'has a query or a fragment, which this kind of URL does not allow';
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
