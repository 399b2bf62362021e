import { parseHost } from '../match/hosts.ts';
import { quote } from '../message-text.ts';
import { parsePathAndQuery } from './path.ts';
import {
  type FieldMatch,
  type HeaderFilter,
  type HttpBackend,
  type HttpFilter,
  type HttpMatch,
  type HttpRoute,
  type HttpTimeouts,
  type PathReplacement,
  REDIRECT_STATUSES,
} from './route.ts';

const MAX_HOSTS = 100;
const MAX_MATCHES = 16;
const MAX_FIELD_MATCHES = 16;
const MAX_FILTERS = 16;
const MAX_HEADER_EDITS = 16;
const MAX_BACKENDS = 64;
/** The same limit as in the Gateway API. The sum of 64 weights is exact in a double, and even in 32 bits. */
const MAX_BACKEND_WEIGHT = 1_000_000;
const MAX_PATH_LENGTH = 1024;
const MAX_NAME_LENGTH = 256;
const MAX_VALUE_LENGTH = 4096;
const MAX_METHOD_LENGTH = 32;
const MAX_PORT = 65_535;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/**
 * Fields that no filter may change. Framing and the connection's fields belong to the proxy, and an endpoint could read other requests than
 * the proxy has sent if a filter set them (RFC 9112 §11.2). A rewrite changes the host.
 */
const RESERVED_FIELDS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** RFC 9110 §5.6.2, in lower case. */
const FIELD_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** RFC 9110 §5.6.2. */
const METHOD = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** RFC 9110 §5.5, without `obs-text`: visible ASCII, with spaces and tabs inside. */
const FIELD_VALUE = /^(?:[!-~](?:[ \t!-~]*[!-~])?)?$/;

/**
 * Returns what is wrong with a route: messages such as `matches[0].path "x" must begin with "/"`, in the order of the fields, and at most
 * a few per field. Returns an empty list if the route is valid. `compileRouter` needs valid routes.
 */
export function httpRouteMistakes(route: HttpRoute): string[] {
  const mistakes: string[] = [];
  const { hosts, matches, filters, backends } = route;
  if (isWithinLimit('hosts', hosts, { max: MAX_HOSTS, mistakes })) {
    for (const host of hosts) if (parseHost(host) !== host) mistakes.push(`hosts: ${quote(host)} ${NOT_A_HOST}`);
    if (new Set(hosts).size < hosts.length) mistakes.push('hosts: each host may occur only once');
  }
  if (isWithinLimit('matches', matches, { max: MAX_MATCHES, mistakes }))
    matches.forEach((match, index) => {
      checkMatch(`matches[${index}]`, match, mistakes);
    });
  if (isWithinLimit('filters', filters, { max: MAX_FILTERS, mistakes })) {
    filters.forEach((filter, index) => {
      checkFilter(`filters[${index}]`, filter, mistakes);
    });
    checkFilterCombination(route, mistakes);
  }
  if (isWithinLimit('backends', backends, { max: MAX_BACKENDS, mistakes })) checkBackends(route, mistakes);
  checkTimeouts(route.timeouts, mistakes);
  return mistakes;
}

const NOT_A_HOST = 'is not a host name in lower case, such as "shop.example.com" or "*.example.com"';

function isWithinLimit(
  field: string,
  items: readonly unknown[],
  { max, mistakes }: { readonly max: number; readonly mistakes: string[] },
): boolean {
  if (items.length > max) mistakes.push(`${field} has ${items.length} items, and at most ${max} are allowed`);
  return items.length <= max;
}

function checkMatch(field: string, match: HttpMatch, mistakes: string[]): void {
  const { path, method, headers, query } = match;
  checkPath(`${field}.path`, path.value, mistakes);
  if (method !== null && (method.length > MAX_METHOD_LENGTH || !METHOD.test(method)))
    mistakes.push(`${field}.method ${quote(method)} is not a method, such as "GET"`);
  if (isWithinLimit(`${field}.headers`, headers, { max: MAX_FIELD_MATCHES, mistakes })) {
    checkUniqueNames(`${field}.headers`, headers, mistakes);
    for (const header of headers) checkHeaderMatch(`${field}.headers`, header, mistakes);
  }
  if (isWithinLimit(`${field}.query`, query, { max: MAX_FIELD_MATCHES, mistakes })) {
    checkUniqueNames(`${field}.query`, query, mistakes);
    for (const parameter of query) checkQueryMatch(`${field}.query`, parameter, mistakes);
  }
}

function checkHeaderMatch(field: string, header: FieldMatch, mistakes: string[]): void {
  checkFieldName(field, header.name, mistakes);
  if (header.kind === 'exact') checkFieldValue(field, header.value, mistakes);
}

function checkQueryMatch(field: string, parameter: FieldMatch, mistakes: string[]): void {
  if (parameter.name === '' || parameter.name.length > MAX_NAME_LENGTH)
    mistakes.push(`${field}: the name ${quote(parameter.name)} must have 1 to ${MAX_NAME_LENGTH} characters`);
  if (parameter.kind === 'exact' && parameter.value.length > MAX_VALUE_LENGTH)
    mistakes.push(`${field}: the value of ${quote(parameter.name)} must have at most ${MAX_VALUE_LENGTH} characters`);
}

function checkPath(field: string, path: string, mistakes: string[]): void {
  const where = `${field} ${quote(path)}`;
  if (path.length > MAX_PATH_LENGTH) {
    mistakes.push(`${where} must have at most ${MAX_PATH_LENGTH} characters`);
    return;
  }
  if (!path.startsWith('/')) {
    mistakes.push(`${where} must begin with "/"`);
    return;
  }
  // As in the Gateway API, a route must not have an empty segment, because most endpoints would read such a path as another path.
  if (path.includes('//')) {
    mistakes.push(`${where} must not contain "//"`);
    return;
  }
  const parsed = parsePathAndQuery(path);
  if (typeof parsed === 'string') mistakes.push(`${where} is not a valid path: ${parsed.replaceAll('-', ' ')}`);
  else if (parsed.query !== '') mistakes.push(`${where} must not contain "?"`);
  // Paths of requests are compared in this form, so no request would match any other form.
  else if (parsed.path !== path) mistakes.push(`${where} must be written in its normal form ${quote(parsed.path)}`);
}

function checkFieldName(field: string, name: string, mistakes: string[]): void {
  if (name.length > MAX_NAME_LENGTH || !FIELD_NAME.test(name))
    mistakes.push(`${field}: ${quote(name)} is not the name of a header in lower case`);
}

function checkFieldValue(field: string, value: string, mistakes: string[]): void {
  if (value.length > MAX_VALUE_LENGTH || !FIELD_VALUE.test(value))
    mistakes.push(
      `${field}: the value ${quote(value)} must have at most ${MAX_VALUE_LENGTH} visible ASCII characters, with spaces only inside`,
    );
}

function checkUniqueNames(field: string, items: readonly { readonly name: string }[], mistakes: string[]): void {
  if (new Set(items.map(({ name }) => name)).size < items.length)
    mistakes.push(`${field}: each name may occur only once`);
}

function checkFilter(field: string, filter: HttpFilter, mistakes: string[]): void {
  switch (filter.kind) {
    case 'request-headers':
    case 'response-headers':
      checkHeaderFilter(field, filter, mistakes);
      break;
    case 'redirect':
      checkRewrittenHost(field, filter.host, mistakes);
      if (filter.path !== null) checkPath(`${field}.path`, filter.path.value, mistakes);
      if (filter.port !== null) checkPort(field, filter.port, mistakes);
      if (!REDIRECT_STATUSES.includes(filter.status))
        mistakes.push(`${field}.status ${filter.status} must be one of ${REDIRECT_STATUSES.join(', ')}`);
      break;
    case 'rewrite':
      checkRewrittenHost(field, filter.host, mistakes);
      if (filter.path !== null) checkPath(`${field}.path`, filter.path.value, mistakes);
  }
}

function checkHeaderFilter(field: string, { set, add, remove }: HeaderFilter, mistakes: string[]): void {
  const edits = [...set, ...add, ...remove.map((name) => ({ name, value: '' }))];
  if (!isWithinLimit(field, edits, { max: MAX_HEADER_EDITS, mistakes })) return;
  checkUniqueNames(field, edits, mistakes);
  for (const { name, value } of edits) {
    checkFieldName(field, name, mistakes);
    checkFieldValue(field, value, mistakes);
    if (RESERVED_FIELDS.has(name)) mistakes.push(`${field}: no filter may change the header ${quote(name)}`);
  }
}

function checkRewrittenHost(field: string, host: string | null, mistakes: string[]): void {
  if (host !== null && (host.startsWith('*') || parseHost(host) !== host))
    mistakes.push(`${field}.host ${quote(host)} is not a host name in lower case, such as "shop.example.com"`);
}

function checkPort(field: string, port: number, mistakes: string[]): void {
  if (!isIntegerBetween(port, 1, MAX_PORT)) mistakes.push(`${field}.port ${port} must be from 1 to ${MAX_PORT}`);
}

function checkFilterCombination({ filters, matches }: HttpRoute, mistakes: string[]): void {
  const urlFilters = filters.filter((filter) => filter.kind === 'redirect' || filter.kind === 'rewrite');
  if (urlFilters.length > 1)
    mistakes.push('filters: a route may have one redirect or one rewrite, not both or several');
  const replacesPrefix = urlFilters.some(({ path }: { path: PathReplacement | null }) => path?.kind === 'prefix');
  if (replacesPrefix && matches.some(({ path }) => path.kind === 'exact'))
    mistakes.push('filters: a prefix can be replaced only if all matches have a path of kind "prefix"');
}

function checkBackends({ backends }: HttpRoute, mistakes: string[]): void {
  if (backends.length === 0)
    mistakes.push('backends: name at least one backend; the requests of a redirect count for its backends too');
  if (new Set(backends.map(({ service, port }) => `${service}/${port}`)).size < backends.length)
    mistakes.push('backends: each port of a Service may occur only once');
  backends.forEach((backend: HttpBackend, index) => {
    const field = `backends[${index}]`;
    checkPort(field, backend.port, mistakes);
    if (!isIntegerBetween(backend.weight, 0, MAX_BACKEND_WEIGHT))
      mistakes.push(`${field}.weight ${backend.weight} must be a whole number from 0 to ${MAX_BACKEND_WEIGHT}`);
  });
}

function checkTimeouts({ requestMs, backendRequestMs }: HttpTimeouts, mistakes: string[]): void {
  for (const [name, value] of Object.entries({ requestMs, backendRequestMs })) {
    if (value !== null && !isIntegerBetween(value, 1, MAX_TIMEOUT_MS))
      mistakes.push(`timeouts.${name} ${value} must be from 1 ms to 24 hours`);
  }
  if (requestMs !== null && backendRequestMs !== null && backendRequestMs > requestMs)
    mistakes.push('timeouts.backendRequestMs must not be longer than timeouts.requestMs');
}

function isIntegerBetween(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}
