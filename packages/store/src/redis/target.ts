import { formatHostPort, redactUrl, type Secret } from '@weir/runtime';
import { StoreError } from '../error.ts';

/** Where a Redis is, and who we are there. */
export interface RedisTarget {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  readonly tls: boolean;
  /** For people: without the password. */
  readonly shown: string;
}

const FORM = 'redis://[USER:PASSWORD@]HOST[:PORT][/DB], or rediss:// for TLS (percent-encode special characters)';

/** Reads a Redis URL; a wrong one throws REFUSED, with the password redacted. */
export function parseTarget(url: Secret | string): RedisTarget {
  const text = (typeof url === 'string' ? url : url.reveal()).trim();
  const refuse = (why: string): never => {
    throw new StoreError('REFUSED', `the Redis URL "${redactUrl(text)}" ${why}; use ${FORM}`);
  };
  if (!URL.canParse(text)) return refuse('is not a URL');
  const parsed = new URL(text);
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') return refuse('does not begin with redis://');
  if (parsed.hostname === '') return refuse('names no host');
  const db = /^\/?(\d*)$/.exec(parsed.pathname)?.[1];
  if (db === undefined) return refuse('has a path that is not the number of a database');
  if (parsed.search !== '' || parsed.hash !== '') return refuse('has a query or a fragment');
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  const port = parsed.port === '' ? 6379 : Number(parsed.port);
  return {
    host,
    port,
    username: decode(parsed.username),
    password: decode(parsed.password),
    db: Number(db),
    tls: parsed.protocol === 'rediss:',
    shown: formatHostPort({ host, port }),
  };
}

function decode(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
