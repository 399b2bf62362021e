// The cookie that binds a client to the endpoint of its first request. Its value is a keyed hash of the endpoint: it shows
// no address, and nobody without the key can make the value of another endpoint. All proxies with the same key agree.
import { createHmac, randomBytes } from 'node:crypto';
import { type EndpointStats, endpointKey } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import { asciiBytes, fieldLine } from './passes/byte-writer.ts';
import type { EndpointCookie } from './passes/endpoint-cookie.ts';

const KEY_BYTES = 32;
/**
 * The most endpoints of a Service that get a value. A value costs about 3 µs, and one Service may delay other connections
 * by at most 50 ms.
 */
const MAX_STICKY_ENDPOINTS = 10_000;

/** Derives the key that all proxies of the fleet share. Undefined without a sealer, which has the fleet secret. */
export function deriveStickyKey(sealer: Pick<Sealer, 'derive'> | undefined): Uint8Array | undefined {
  return sealer?.derive('sticky cookie', KEY_BYTES);
}

/** Returns a random key for a proxy without a fleet secret. */
export function createStickyKey(): Uint8Array {
  return Uint8Array.from(randomBytes(KEY_BYTES));
}

/** 128 bits, as base64url without padding. */
const HASH_BYTES = 16;
const VALUE_LENGTH = 22;

interface StickyEndpoint {
  readonly stats: EndpointStats;
  readonly value: Uint8Array;
  /** The lines Set-Cookie, made on first use. */
  plainLine: Uint8Array | undefined;
  tlsLine: Uint8Array | undefined;
}

export class StickyCookie implements EndpointCookie {
  readonly nameText: string;
  readonly name: Uint8Array;
  readonly #key: Uint8Array;
  #endpoints: readonly EndpointStats[] = [];
  #known = new Map<EndpointStats, StickyEndpoint>();
  /** The endpoints by `hashOfValue`. */
  #byHash = new Map<number, StickyEndpoint[]>();

  /** `key` is the key of the worker, and `service` the UID of the Service, so that no two Services have equal values. */
  constructor(name: string, { key, service }: { readonly key: Uint8Array; readonly service: string }) {
    this.nameText = name;
    this.name = asciiBytes(name);
    this.#key = createHmac('sha256', key).update(service).digest();
  }

  /** Sets the endpoints that values may name. Does nothing if the list is the same object as before. */
  setEndpoints(endpoints: readonly EndpointStats[]): void {
    if (endpoints === this.#endpoints) return;
    const known = this.#known;
    this.#endpoints = endpoints;
    this.#known = new Map();
    this.#byHash = new Map();
    for (const stats of endpoints.slice(0, MAX_STICKY_ENDPOINTS)) {
      const endpoint = known.get(stats) ?? this.#createEndpoint(stats);
      const hash = hashOfValue(endpoint.value, 0);
      const others = this.#byHash.get(hash);
      this.#known.set(stats, endpoint);
      if (others === undefined) this.#byHash.set(hash, [endpoint]);
      else others.push(endpoint);
    }
  }

  endpointOf(bytes: Uint8Array, start: number, end: number): EndpointStats | undefined {
    if (end - start !== VALUE_LENGTH) return undefined;
    const candidates = this.#byHash.get(hashOfValue(bytes, start));
    if (candidates === undefined) return undefined;
    for (const { stats, value } of candidates) if (isValueAt(bytes, start, value)) return stats;
    return undefined;
  }

  /** Returns the line Set-Cookie for a client of the endpoint, or undefined if the endpoint has no value. */
  lineFor(stats: EndpointStats, { isHttps }: { readonly isHttps: boolean }): Uint8Array | undefined {
    const endpoint = this.#known.get(stats);
    if (endpoint === undefined) return undefined;
    if (isHttps) endpoint.tlsLine ??= this.#line(endpoint, '; Secure; SameSite=Lax');
    else endpoint.plainLine ??= this.#line(endpoint, '');
    return isHttps ? endpoint.tlsLine : endpoint.plainLine;
  }

  #createEndpoint(stats: EndpointStats): StickyEndpoint {
    const hash = createHmac('sha256', this.#key).update(endpointKey(stats.endpoint)).digest().subarray(0, HASH_BYTES);
    return { stats, value: asciiBytes(hash.toString('base64url')), plainLine: undefined, tlsLine: undefined };
  }

  #line({ value }: StickyEndpoint, attributes: string): Uint8Array {
    const text = Buffer.from(value).toString('latin1');
    return fieldLine('Set-Cookie', `${this.nameText}=${text}; Path=/; HttpOnly${attributes}`);
  }
}

/** Combines the low six bits of five characters. */
function hashOfValue(bytes: Uint8Array, start: number): number {
  let hash = 0;
  for (let at = start; at < start + 5; at += 1) hash = (hash << 6) | ((bytes[at] as number) & 63);
  return hash;
}

function isValueAt(bytes: Uint8Array, start: number, value: Uint8Array): boolean {
  for (let at = 0; at < VALUE_LENGTH; at += 1) if (bytes[start + at] !== value[at]) return false;
  return true;
}
