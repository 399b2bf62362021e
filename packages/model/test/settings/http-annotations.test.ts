import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ParsedSettings,
  parseRequestTarget,
  type ServicePort,
  type ServiceSettings,
  serviceSettingsFor,
} from '@weir/model';
import fc from 'fast-check';
import { port, service } from '../fixtures/snapshot.ts';

const HTTP = port(80, { appProtocol: 'http' });
const parse = (
  annotations: Readonly<Record<string, string>>,
  ports: readonly ServicePort[] = [HTTP],
): ParsedSettings => {
  const prefixed = Object.entries(annotations).map(([name, value]) => [`weir.dev/${name}`, value]);
  return serviceSettingsFor(service('a/web', { ports, annotations: Object.fromEntries(prefixed) }));
};
function settingsOf(...parameters: Parameters<typeof parse>): ServiceSettings {
  const parsed = parse(...parameters);
  assert.equal(parsed.kind, 'settings', JSON.stringify(parsed));
  return (parsed as Extract<ParsedSettings, { kind: 'settings' }>).settings;
}
function mistakeOf(...parameters: Parameters<typeof parse>): string {
  const parsed = parse(...parameters);
  assert.equal(parsed.kind, 'invalid');
  const { mistakes } = parsed as Extract<ParsedSettings, { kind: 'invalid' }>;
  assert.equal(mistakes.length, 1, mistakes.join());
  return mistakes[0] ?? '';
}

test('returns the path prefix, and whether the proxies remove it', () => {
  const { pathPrefix, stripPrefix } = settingsOf({ 'path-prefix': '/api/v1', 'strip-prefix': 'true' });
  assert.deepEqual([pathPrefix, stripPrefix], ['/api/v1', true]);
  assert.equal(settingsOf({ 'path-prefix': '/api', 'strip-prefix': 'false' }).stripPrefix, undefined);
  assert.ok(!('pathPrefix' in settingsOf({ 'strip-prefix': 'false' })));
});

test('accepts every path in its normal form without a slash at the end, and no other path', () => {
  const text = fc
    .array(
      fc.constantFrom(
        '/',
        '/',
        'a',
        'Z',
        '.',
        '..',
        '~',
        '%C3%BC',
        '%41',
        '%c3',
        '%2F',
        '%00',
        '%20',
        '%3B',
        ';',
        '?',
        '#',
        '=',
        '@',
        '|',
        "'",
        ' ',
      ),
      { maxLength: 8 },
    )
    .map((parts) => `/${parts.join('')}`);
  const counts = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(text, (path) => {
      const normal = parseRequestTarget('GET', path, 'a.test');
      const isNormal = typeof normal !== 'string' && normal.path === path;
      const isExpected = isNormal && !path.endsWith('/') && !/\/\/|['[\]^|]/.test(path);
      const parsed = parse({ 'path-prefix': path });
      assert.equal(parsed.kind, isExpected ? 'settings' : 'invalid', path);
      counts[isExpected ? 'accepted' : 'refused'] += 1;
    }),
    { numRuns: 3_000 },
  );
  assert.ok(counts.accepted > 100 && counts.refused > 100, JSON.stringify(counts));
});

test('says what the normal form of a path prefix is', () => {
  assert.equal(
    mistakeOf({ 'path-prefix': '/api/' }),
    'annotation weir.dev/path-prefix: "/api/" is not allowed; use a path such as /shop or /api/v1 in its normal form: at most 1024 characters, no slash at the end, no empty segment, "." or "..", no query, and percent-encodings in upper case and only where they are needed (without this annotation, the Service gets all paths)',
  );
});

test('refuses a path prefix of a Service without an HTTP port', () => {
  for (const ports of [[port(80)], [port(53, { protocol: 'UDP', appProtocol: 'http' })]]) {
    assert.equal(
      mistakeOf({ 'path-prefix': '/api' }, ports),
      'annotation weir.dev/path-prefix: "/api" can be honoured only at a port where the proxies read HTTP requests; set appProtocol: http at a TCP port, or remove this annotation',
    );
  }
});

test('refuses strip-prefix without a path prefix', () => {
  assert.equal(
    mistakeOf({ 'strip-prefix': 'true' }),
    'annotation weir.dev/strip-prefix: "true" can be honoured only with a valid weir.dev/path-prefix; add that annotation, or remove this one',
  );
});

test('counts a port at which TLS is passed through as no HTTP port', () => {
  const ports = [HTTP, port(443, { appProtocol: 'http' })];
  assert.deepEqual(settingsOf({}, ports).httpPorts, [80, 443]);
  assert.deepEqual(settingsOf({ 'tls-passthrough': 'true' }, ports).httpPorts, [80]);
  assert.equal(settingsOf({ 'tls-passthrough': 'true' }, ports.slice(1)).httpPorts, undefined);
});

test('allows hosts at an HTTP port', () => {
  assert.deepEqual(settingsOf({ hosts: 'shop.example.com' }).hosts, ['shop.example.com']);
});

test('returns the limits of requests and the name of the sticky cookie', () => {
  const { maxBodyBytes, requestTimeoutMs, stickyCookie, limits } = settingsOf({
    'max-body-size': '10Mi',
    'request-timeout': '1m30s',
    'requests-per-second': '1k',
    'max-connections': '7',
    'sticky-cookie': 'shop-endpoint',
  });
  assert.deepEqual([maxBodyBytes, requestTimeoutMs, stickyCookie], [10 * 2 ** 20, 90_000, 'shop-endpoint']);
  assert.deepEqual([limits.requestsPerSecond, limits.connections], [1_000, 7]);
  for (const absent of ['maxBodyBytes', 'requestTimeoutMs', 'stickyCookie']) assert.ok(!(absent in settingsOf({})));
});

test('refuses limits of requests and a sticky cookie of a Service without an HTTP port', () => {
  for (const [name, value] of [
    ['max-body-size', '1k'],
    ['request-timeout', '1s'],
    ['requests-per-second', '5'],
    ['sticky-cookie', 'a'],
  ] as const) {
    const mistake = mistakeOf({ [name]: value }, [port(80)]);
    assert.match(mistake, /can be honoured only at a port where the proxies read HTTP requests; set appProtocol: http/);
  }
});

test('refuses names of cookies that browsers refuse or cut', () => {
  for (const name of ['__Host-a', '__Secure-a', '', 'a b', 'a;b', 'a=b', 'a,b', 'ä', 'x'.repeat(65)])
    assert.match(
      mistakeOf({ 'sticky-cookie': name }),
      /is not allowed; use the name of a cookie such as shop-endpoint/,
    );
});

test('returns which share of the requests is logged, and whether with query strings', () => {
  const accessLogOf = (value: string): unknown => settingsOf({ 'access-log': value }).accessLog;
  assert.deepEqual(accessLogOf('true'), { requestsPerMillion: 1_000_000 });
  assert.deepEqual(accessLogOf('1%'), { requestsPerMillion: 10_000 });
  assert.deepEqual(accessLogOf('0.0001%'), { requestsPerMillion: 1 });
  assert.deepEqual(accessLogOf('99.9999%,query'), { requestsPerMillion: 999_999, hasQuery: true });
  assert.deepEqual(accessLogOf('100.00%'), { requestsPerMillion: 1_000_000 });
  for (const value of ['false', '0%', '0.0%,query']) assert.equal(accessLogOf(value), undefined, value);
});

test('refuses an access log that is neither true, false nor a percentage', () => {
  for (const value of ['', 'yes', '1', '101%', '100.5%', '01%', '0.00001%', '-1%', 'false,query', 'true,cookies'])
    assert.match(
      mistakeOf({ 'access-log': value }),
      /^annotation weir.dev\/access-log: .* is not allowed; use true, false,/,
    );
});

test('a Service without HTTP ports may have an access log, but not of query strings', () => {
  const ports = [port(80)];
  assert.deepEqual(settingsOf({ 'access-log': '1%' }, ports).accessLog, { requestsPerMillion: 10_000 });
  assert.ok(!('accessLog' in settingsOf({ 'access-log': 'false' }, ports)));
  assert.match(
    mistakeOf({ 'access-log': '1%,query' }, ports),
    /can be honoured only at a port where the proxies read HTTP/,
  );
});
