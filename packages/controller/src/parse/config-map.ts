import type { ConfigMapObject } from '@weir/model';
import { DNS_LABEL, DNS_SUBDOMAIN, isObject, truncateAt } from './fields.ts';
import { type ParseResult, parseObject } from './parse-object.ts';
import { readAuthorities, type SecretValue, unusableObject } from './secret.ts';

const CA_KEY = 'ca.crt';

/** Reads only the error pages and ca.crt of a ConfigMap. */
export function parseConfigMap(raw: unknown): ParseResult<ConfigMapObject> {
  return parseObject('ConfigMap', raw, (fields) => {
    const metadata = fields.object('metadata');
    const { data, binaryData } = (raw ?? {}) as { data?: unknown; binaryData?: unknown };
    const isReadable = data === undefined || data === null || isObject(data);
    const values = isObject(data) ? data : {};
    return {
      namespace: metadata.requiredText('namespace', DNS_LABEL),
      name: metadata.requiredText('name', DNS_SUBDOMAIN),
      authorities: readAuthorities(readText(values[CA_KEY], CA_KEY)),
      errorPages: isReadable ? readErrorPages(values, binaryData) : unusableObject('has data that is not a mapping'),
    };
  });
}

/** The maximum number of pages of a ConfigMap, and the maximum size of a page. Every proxy keeps all pages. */
const MAX_PAGES = 32;
const MAX_PAGE_BYTES = 16 * 1024;
const PAGE_NAME = /^([45][0-9][0-9]|[45]xx|default)[.](html|json|txt)$/;
const PAGE_NAME_HELP = 'use a status code, a class or default, and a format, such as 404.html, 5xx.json or default.txt';
const MAX_SHOWN_CHARACTERS = 80;
/** JSON needs six bytes for each of these characters, so that a page would take much more space in the table. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters are refused.
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

function readErrorPages(data: Readonly<Record<string, unknown>>, binaryData: unknown): ConfigMapObject['errorPages'] {
  if (isObject(binaryData) && Object.keys(binaryData).length > 0)
    return unusableObject('has binaryData; use data, because error pages are text');
  const names = Object.keys(data).filter((name) => name !== CA_KEY);
  if (names.length === 0) return unusableObject(`has no error pages; ${PAGE_NAME_HELP}`);
  if (names.length > MAX_PAGES) return unusableObject(`has ${names.length} error pages; use at most ${MAX_PAGES}`);
  const pages: Record<string, string> = {};
  for (const name of names.sort()) {
    const why = PAGE_NAME.test(name) ? pageMistake(name, data[name]) : unknownPageText(name);
    if (why !== undefined) return unusableObject(why);
    pages[name] = data[name] as string;
  }
  return Object.freeze({ kind: 'good', pages: Object.freeze(pages) });
}

function unknownPageText(name: string): string {
  return `has the key "${truncateAt(name, MAX_SHOWN_CHARACTERS)}", which is not the name of an error page; ${PAGE_NAME_HELP}`;
}

function pageMistake(name: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return `has a ${name} that is not text`;
  if (Buffer.byteLength(value) > MAX_PAGE_BYTES) return `has a ${name} of more than ${MAX_PAGE_BYTES / 1024} KiB`;
  if (CONTROL_CHARACTERS.test(value)) return `has a ${name} with control characters`;
  return name.endsWith('.json') && !isJson(value) ? `has a ${name} that is not valid JSON` : undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const MAX_CA_BYTES = 64 * 1024;

function readText(value: unknown, key: string): SecretValue {
  if (value === undefined || value === null || value === '') return { kind: 'none' };
  if (typeof value !== 'string') return unusableObject(`has a ${key} that is not text`);
  return value.length > MAX_CA_BYTES
    ? unusableObject(`has a ${key} of more than ${MAX_CA_BYTES / 1024} KiB`)
    : { kind: 'text', text: value };
}
