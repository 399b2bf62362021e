import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS, entriesOf, type ServicePort, type ServiceSettings } from '@weir/model';
import { port, service } from '../fixtures/snapshot.ts';
import { messageOf, translateFresh } from '../fixtures/translation.ts';

type Annotations = Readonly<Record<string, string>>;

const translated = (annotations: Annotations): ReturnType<typeof translateFresh> => {
  const prefixed = Object.entries(annotations).map(([name, value]) => [`weir.dev/${name}`, value]);
  return translateFresh({ services: [service('a/web', { annotations: Object.fromEntries(prefixed) })] });
};
const settingsOf = (annotations: Annotations): ServiceSettings | null | undefined =>
  entriesOf(translated(annotations).table, 'service')[0]?.settings;
const refusalOf = (annotations: Annotations): string => {
  assert.equal(settingsOf(annotations), null);
  return messageOf(translated(annotations), 'a/web');
};

test('accepts two versions of proxy-protocol', () => {
  assert.equal(settingsOf({})?.proxyProtocol, null);
  assert.equal(settingsOf({ 'proxy-protocol': 'v1' })?.proxyProtocol, 'v1');
  assert.equal(settingsOf({ 'proxy-protocol': 'v2' })?.proxyProtocol, 'v2');
  assert.equal(
    refusalOf({ 'proxy-protocol': 'true' }),
    'annotation weir.dev/proxy-protocol: "true" is not allowed; use one of v1, v2',
  );
});

test('parses durations with several units', () => {
  assert.equal(settingsOf({ 'idle-timeout': '1h30m' })?.idleTimeoutMs, 5_400_000);
  assert.equal(
    refusalOf({ 'connect-timeout': '5m1ms' }),
    'annotation weir.dev/connect-timeout: "5m1ms" is not allowed; use a duration from 1ms to 5m, such as 5s or 1m30s',
  );
});

test('returns hosts in lower case, without duplicates and blanks', () => {
  const hosts = ' Shop.example.com, *.example.com,shop.EXAMPLE.com ';
  const settings = settingsOf({ 'tls-passthrough': 'true', hosts });
  assert.equal(settings?.tlsPassthrough, true);
  assert.deepEqual(settings?.hosts, ['shop.example.com', '*.example.com']);
  assert.deepEqual(settingsOf({ 'tls-passthrough': 'true' })?.hosts, []);
});

test('refuses a list with an invalid host, and names the host', () => {
  for (const [hosts, wrong] of [
    ['a.example,b_c.example', 'b_c.example'],
    ['a.example,', ''],
    ['', ''],
    ['192.0.2.1', '192.0.2.1'],
    ['https://a.example', 'https://a.example'],
  ] as const) {
    const message = refusalOf({ 'tls-passthrough': 'true', hosts });
    assert.ok(
      message.startsWith(`annotation weir.dev/hosts: "${hosts}" is not allowed: "${wrong}" is not a host; use`),
      message,
    );
  }
});

test('refuses more than 1,000 hosts, with their number', () => {
  const names = Array.from({ length: 1_001 }, (_, i) => `h${i}.example`);
  const asked = (hosts: readonly string[]) => ({ 'tls-passthrough': 'true', hosts: hosts.join(',') });
  assert.equal(settingsOf(asked(names.slice(1)))?.hosts.length, 1_000);
  assert.match(
    refusalOf(asked(names)),
    /^annotation weir\.dev\/hosts: "h0\.example,.*…" is not allowed: 1001 hosts are too many: a Service may have at most 1000; use wildcards/,
  );
});

test('refuses hosts if the proxies cannot read at any port which host a client asks for', () => {
  for (const rest of [{}, { 'tls-passthrough': 'false' }]) {
    assert.match(
      refusalOf({ hosts: 'a.example', ...rest }),
      /weir\.dev\/hosts: .* can be honoured only where the proxies can read the host .*; set appProtocol: http at a TCP port, add/,
    );
  }
});

test('refuses TCP-only annotations on a Service with only UDP ports', () => {
  const udp = port(53, { protocol: 'UDP' });
  const annotations = {
    'weir.dev/proxy-protocol': 'v2',
    'weir.dev/tls-passthrough': 'true',
    'weir.dev/hosts': 'a.example',
  };
  const messageFor = (ports: readonly ServicePort[], asked: Annotations): string =>
    messageOf(translateFresh({ services: [service('a/web', { ports, annotations: asked })] }), 'a/web');
  const why =
    'can be honoured only for TCP, and the Service has only UDP ports; remove the annotation, or add a TCP port';
  assert.equal(
    messageFor([udp], annotations),
    Object.entries(annotations)
      .map(([name, value]) => `annotation ${name}: "${value}" ${why}`)
      .join('; '),
  );
  assert.equal(messageFor([udp, port(53)], annotations), 'accepted for tenant "a"');
  assert.equal(messageFor([udp], { 'weir.dev/tls-passthrough': 'false' }), 'accepted for tenant "a"');
});

test('parses limits as quantities', () => {
  assert.deepEqual(
    settingsOf({
      'max-connections': '1k',
      'max-connections-per-client': '0',
      'new-connections-per-second': '2k',
      'new-connections-per-second-per-client': '5',
      'in-bits-per-second': '1.5M',
      'out-bits-per-second': '1Gi',
    })?.limits,
    {
      connections: 1_000,
      connectionsPerClient: 0,
      newConnectionsPerSecond: 2_000,
      newConnectionsPerSecondPerClient: 5,
      inBitsPerSecond: 1_500_000,
      outBitsPerSecond: 2 ** 30,
    },
  );
  assert.deepEqual(settingsOf({ 'max-connections': '7' })?.limits, {
    ...DEFAULT_SERVICE_SETTINGS.limits,
    connections: 7,
  });
});

test('refuses a limit that is not a whole number', () => {
  for (const value of ['', '-1', '0.5', '10 M', '10MB', '1e30', '9'.repeat(100)]) {
    assert.match(
      refusalOf({ 'in-bits-per-second': value }),
      /weir\.dev\/in-bits-per-second: .* is not allowed; use a whole number of bits such as 10M, 1\.5G or 1Gi/,
    );
  }
});

test('gives a health check defaults for all options', () => {
  const timing = { intervalMs: 5_000, timeoutMs: 2_000, healthyThreshold: 1, unhealthyThreshold: 3 };
  assert.deepEqual(settingsOf({})?.healthCheck, { kind: 'off' });
  assert.deepEqual(settingsOf({ 'health-check': 'off' })?.healthCheck, { kind: 'off' });
  assert.deepEqual(settingsOf({ 'health-check': 'tcp' })?.healthCheck, { kind: 'tcp', ...timing });
  assert.deepEqual(settingsOf({ 'health-check': 'http' })?.healthCheck, { kind: 'http', path: '/', ...timing });
  const https = { kind: 'http', path: '/', overTls: true, ...timing } as const;
  assert.deepEqual(settingsOf({ 'health-check': 'https' })?.healthCheck, https);
  const asked = settingsOf({ 'health-check': 'https', 'health-check-path': '/readyz' });
  assert.deepEqual(asked?.healthCheck, { ...https, path: '/readyz' });
  const grpc = { kind: 'tcp', grpcService: '', ...timing } as const;
  assert.deepEqual(settingsOf({ 'health-check': 'grpc' })?.healthCheck, grpc);
  const ofService = settingsOf({ 'health-check': 'grpc', 'health-check-path': '/shop.v1.Orders' });
  assert.deepEqual(ofService?.healthCheck, { ...grpc, grpcService: 'shop.v1.Orders' });
});

test('accepts all options of a health check in any order', () => {
  assert.deepEqual(
    settingsOf({
      'health-check-unhealthy': '10',
      'health-check-timeout': '600s',
      'health-check-path': '/healthz?deep=1&"x"',
      'health-check-interval': '10m',
      'health-check-healthy': '2',
      'health-check-drain-timeout': '1500ms',
      'health-check': 'http',
    })?.healthCheck,
    {
      kind: 'http',
      path: '/healthz?deep=1&"x"',
      intervalMs: 600_000,
      timeoutMs: 600_000,
      healthyThreshold: 2,
      unhealthyThreshold: 10,
      drainTimeoutMs: 1_500,
    },
  );
});

test('shortens the default timeout of a health check to its interval', () => {
  const often = { 'health-check': 'tcp', 'health-check-interval': '1s' };
  const timeoutOf = (annotations: Annotations): number | undefined => {
    const check = settingsOf(annotations)?.healthCheck;
    return check?.kind === 'tcp' ? check.timeoutMs : undefined;
  };
  assert.equal(timeoutOf(often), 1_000);
  assert.equal(timeoutOf({ ...often, 'health-check-timeout': '20ms' }), 20);
});

test('refuses invalid options of a health check, with the allowed values', () => {
  const rows: readonly (readonly [Annotations, RegExp])[] = [
    [{ 'health-check': 'ping' }, /health-check: "ping" is not allowed; use one of off, tcp, http, https, grpc$/],
    [
      { 'health-check': 'tcp', 'health-check-path': '/' },
      /health-check-path: "\/" can be honoured only with .*: http, https or grpc;/,
    ],
    [{ 'health-check-path': '/' }, /only with weir\.dev\/health-check: http, https or grpc;/],
    [{ 'health-check-interval': '5s' }, /only with weir\.dev\/health-check: tcp, http, https or grpc;/],
    [
      { 'health-check': 'off', 'health-check-healthy': '2' },
      /only with weir\.dev\/health-check: tcp, http, https or grpc;/,
    ],
    [{ 'health-check': 'tcp', 'health-check-interval': '999ms' }, /use a duration from 1s to 10m$/],
    [{ 'health-check': 'tcp', 'health-check-interval': '601s' }, /use a duration from 1s to 10m$/],
    [
      { 'health-check': 'tcp', 'health-check-timeout': '6s' },
      /from 1ms to weir.dev\/health-check-interval, which is 5s$/,
    ],
    [{ 'health-check': 'tcp', 'health-check-timeout': '0ms' }, /from 1ms to weir.dev\/health-check-interval/],
    [
      { 'health-check': 'tcp', 'health-check-drain-timeout': '0s' },
      /use a duration from 1ms to 1d, such as 5s or 1m30s$/,
    ],
    [{ 'health-check-drain-timeout': '1s' }, /only with weir\.dev\/health-check: tcp, http, https or grpc;/],
    [{ 'health-check': 'tcp', 'health-check-healthy': '0' }, /use a whole number from 1 to 10$/],
    [{ 'health-check': 'tcp', 'health-check-unhealthy': '11' }, /use a whole number from 1 to 10$/],
    [{ 'health-check': 'tcp', 'health-check-unhealthy': '1e0' }, /use a whole number from 1 to 10$/],
    ...['healthz', '', '/a b', '/a\r\nX-Evil: 1', '/\u0000', '/ü', '/#top', `/${'a'.repeat(1_024)}`].map(
      (path) => [{ 'health-check': 'http', 'health-check-path': path }, /use a path such as \/healthz/] as const,
    ),
  ];
  for (const [annotations, message] of rows) assert.match(refusalOf(annotations), message);
});
