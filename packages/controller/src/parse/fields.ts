// Reads an untrusted JSON object field by field. A wrong field is noted with its path and the allowed values, and reading goes on
// with a harmless value. Therefore all mistakes of an object are reported at once, and reading never throws.
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { closestName, isCalendarDay, parseCidr, parseHost } from '@weir/model';
import type { Json } from '../kubernetes/kube-api.ts';

export interface TextFormat {
  /** Describes the allowed text. Follows "use " in a message. */
  readonly allowed: string;
  matches(text: string): boolean;
}

export interface IntegerRange {
  readonly from: number;
  readonly to: number;
}

export class Fields {
  /** The path of this object in its document, such as `spec.ports[1]`; empty for the document itself. */
  readonly path: string;
  readonly #json: Json;
  readonly #mistakes: string[];

  constructor(json: unknown, mistakes: string[], path = '') {
    this.path = path;
    this.#mistakes = mistakes;
    this.#json = isObject(json) ? json : {};
    if (!isObject(json) && !isAbsent(json)) this.#note(path || 'the object', json, 'a mapping');
  }

  /** Whether the field is set. Null counts as not set, because Kubernetes writes null for a field that is not set. */
  has(name: string): boolean {
    return !isAbsent(this.#json[name]);
  }

  raw(name: string): unknown {
    return this.#json[name] ?? null;
  }

  /** Reads a text. Returns null if the field is absent or wrong. */
  text(name: string, format?: TextFormat): string | null {
    const value = this.#json[name];
    if (isAbsent(value)) return null;
    if (typeof value === 'string' && (format === undefined || format.matches(value))) return value;
    this.#note(this.#pathOf(name), value, format?.allowed ?? 'text (in quotes, if it looks like a number)');
    return null;
  }

  requiredText(name: string, format: TextFormat): string {
    if (!this.has(name)) this.noteMissing(name, format.allowed);
    return this.text(name, format) ?? '';
  }

  integer(name: string, { from, to }: IntegerRange): number | null {
    const value = this.#json[name];
    if (isAbsent(value)) return null;
    if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return value;
    this.#note(this.#pathOf(name), value, rangeText({ from, to }));
    return null;
  }

  requiredInteger(name: string, range: IntegerRange): number {
    if (!this.has(name)) this.noteMissing(name, rangeText(range));
    return this.integer(name, range) ?? range.from;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.#json[name];
    if (isAbsent(value)) return fallback;
    if (typeof value === 'boolean') return value;
    this.#note(this.#pathOf(name), value, 'true or false');
    return fallback;
  }

  oneOf<T extends string>(name: string, allowed: readonly T[], fallback: T): T {
    const value = this.#json[name];
    if (isAbsent(value)) return fallback;
    const found = allowed.find((each) => each === value);
    if (found === undefined) this.#note(this.#pathOf(name), value, allowed.join(', '));
    return found ?? fallback;
  }

  /** Reads an object. An absent object counts as an empty object. */
  object(name: string): Fields {
    return new Fields(this.#json[name], this.#mistakes, this.#pathOf(name));
  }

  objects(name: string): Fields[] {
    return this.#list(name).map((item, index) => {
      const path = `${this.#pathOf(name)}[${index}]`;
      if (isAbsent(item)) this.#note(path, item, 'a mapping');
      return new Fields(item, this.#mistakes, path);
    });
  }

  texts(name: string, format?: TextFormat): string[] {
    const found: string[] = [];
    for (const [index, item] of this.#list(name).entries()) {
      if (typeof item === 'string' && (format === undefined || format.matches(item))) found.push(item);
      else this.#note(`${this.#pathOf(name)}[${index}]`, item, format?.allowed ?? 'text');
    }
    return found;
  }

  /** Reads a mapping of text to text, such as labels or annotations. */
  textMap(name: string): Record<string, string> {
    const map = this.#json[name];
    if (isAbsent(map)) return {};
    if (!isObject(map)) this.#note(this.#pathOf(name), map, 'a mapping of text to text');
    const entries: [string, string][] = [];
    for (const [key, value] of isObject(map) ? Object.entries(map) : []) {
      if (typeof value === 'string') entries.push([key, value]);
      else this.#note(`${this.#pathOf(name)}["${key}"]`, value, 'text (in quotes, if it looks like a number)');
    }
    return Object.fromEntries(entries);
  }

  /** Notes a mistake for each unknown field, because the user would otherwise believe that Weir honours the field. */
  refuseUnknown(known: readonly string[]): void {
    for (const name of this.names()) {
      if (known.includes(name)) continue;
      const meant = closestName(name, known);
      const advice = meant === undefined ? `use ${known.join(', ')}` : `did you mean ${meant}?`;
      this.#mistakes.push(`${this.#pathOf(name)} is unknown; ${advice}`);
    }
  }

  names(): string[] {
    return Object.keys(this.#json).filter((name) => this.has(name));
  }

  /** Reads a list whose items may be of several types. */
  list(name: string): readonly unknown[] {
    return this.#list(name);
  }

  noteMissing(name: string, allowed: string): void {
    this.#mistakes.push(`${this.#pathOf(name)} is missing; use ${allowed}`);
  }

  noteInvalid(name: string, allowed: string): void {
    this.#note(this.#pathOf(name), this.#json[name], allowed);
  }

  /** Notes a mistake for a field that has no effect here. `reason` follows "remove it: " in the message. */
  noteUnused(name: string, reason: string): void {
    this.#mistakes.push(`${this.#pathOf(name)} is ${shown(this.#json[name])}; remove it: ${reason}`);
  }

  noteInvalidItem(name: string, index: number, allowed: string): void {
    this.#note(`${this.#pathOf(name)}[${index}]`, this.#list(name)[index], allowed);
  }

  #list(name: string): readonly unknown[] {
    const value = this.#json[name];
    if (isAbsent(value)) return [];
    if (Array.isArray(value)) return value;
    this.#note(this.#pathOf(name), value, 'a list');
    return [];
  }

  #pathOf(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  #note(path: string, value: unknown, allowed: string): void {
    this.#mistakes.push(`${path} is ${shown(value)}; use ${allowed}`);
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function rangeText({ from, to }: IntegerRange): string {
  return to === Number.MAX_SAFE_INTEGER ? `a whole number, ${from} or more` : `a whole number from ${from} to ${to}`;
}

const MAX_SHOWN_CHARACTERS = 80;

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'a mapping';
  if (isAbsent(value)) return 'empty';
  // JSON.stringify would show YAML's .nan and .inf as null.
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return truncateAt(text, MAX_SHOWN_CHARACTERS);
}

/**
 * Cuts text to `maxLength` UTF-16 code units without splitting a surrogate pair. An API server would replace half a pair, and the stored
 * object would then differ from the object that was sent.
 */
export function truncateAt(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

// Formats of names and numbers in Kubernetes objects. Objects in files are checked as strictly as an API server would check them.
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** The format of an RFC 1123 label. */
export const DNS_LABEL: TextFormat = {
  allowed: 'lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit',
  matches: (text) => LABEL.test(text),
};

/** The format of an RFC 1123 subdomain. */
export const DNS_SUBDOMAIN: TextFormat = {
  allowed: 'lower-case letters, digits, "-" and ".", at most 253, beginning and ending with a letter or digit',
  matches: (text) => text.length <= 253 && SUBDOMAIN.test(text),
};

/** A label value that is not empty. Names of tenants and pools have this format. */
export const LABEL_TEXT: TextFormat = {
  allowed: 'letters, digits, "-", "_" and ".", at most 63, beginning and ending with a letter or digit',
  matches: (text) => text !== '' && LABEL_VALUE.test(text),
};

/** The key of a label: `name` or `prefix/name`. */
export const LABEL_KEY: TextFormat = {
  allowed: 'the key of a label, such as team or example.com/team',
  matches(text) {
    const slash = text.indexOf('/');
    const prefix = slash === -1 ? null : text.slice(0, slash);
    return LABEL_NAME.test(text.slice(slash + 1)) && (prefix === null || DNS_SUBDOMAIN.matches(prefix));
  },
};

export const IP_ADDRESS: TextFormat = { allowed: 'an IP address', matches: (text) => isIP(text) !== 0 };
export const IPV4_ADDRESS: TextFormat = { allowed: 'an IPv4 address', matches: isIPv4 };
export const IPV6_ADDRESS: TextFormat = { allowed: 'an IPv6 address', matches: isIPv6 };

export const CIDR: TextFormat = {
  allowed: 'a CIDR such as 10.0.0.0/8 or fd00::/8',
  matches: (text) => parseCidr(text) !== undefined,
};

export const HOST: TextFormat = {
  allowed:
    'a host such as shop.example.com, or *.shop.example.com for all its subdomains; write international names in punycode (xn--…)',
  matches: (text) => parseHost(text) !== undefined,
};

export const PORT: IntegerRange = { from: 1, to: 65_535 };
export const COUNT: IntegerRange = { from: 0, to: Number.MAX_SAFE_INTEGER };
const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/**
 * Returns milliseconds since the epoch for a time such as `2026-07-01T12:00:00Z` (RFC 3339); undefined for any other text, and for a day that
 * the calendar does not have.
 */
export function parseTimestamp(text: string): number | undefined {
  const ms = RFC3339.test(text) && isCalendarDay(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

export const TIMESTAMP: TextFormat = {
  allowed: 'a time such as 2026-07-01T12:00:00Z',
  matches: (text) => parseTimestamp(text) !== undefined,
};
