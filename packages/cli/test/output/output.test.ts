import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rate } from '@weir/console';
import {
  type Counters,
  countersFrom,
  DEFAULT_SERVICE_SETTINGS,
  EMPTY_TABLE,
  type HealthCheckSettings,
  tableToJson,
  ZERO_COUNTERS,
} from '@weir/model';
import type { ServiceExplanation } from '../../src/client/responses.ts';
import { explanationText } from '../../src/commands/explain.ts';
import { dryRunText } from '../../src/commands/translate.ts';
import { bitRateText, bytesText, countText, percentText, shareText } from '../../src/output/amounts.ts';
import { colourizeFor } from '../../src/output/ansi.ts';
import { resolvedProblemText } from '../../src/output/problem-text.ts';
import { tableText } from '../../src/output/table.ts';
import { refusalText, sortedFrame, topText } from '../../src/output/top-text.ts';
import { wantsColour } from '../../src/terminal.ts';

test('prints amounts with three digits and a unit', () => {
  const bytes = [0, 1, 999, 1_000, 1_549, 99_940, 99_950, 999_499, 999_500, 1.5e9, 2.5e15, 7e18].map(bytesText);
  assert.deepEqual(bytes, [
    '0 B',
    '1 B',
    '999 B',
    '1.0 kB',
    '1.5 kB',
    '99.9 kB',
    '100 kB',
    '999 kB',
    '1.0 MB',
    '1.5 GB',
    '2.5 PB',
    '7000 PB',
  ]);
  assert.equal(bitRateText(12_400_000), '12.4 Mbit/s');
});

test('rounds large counts to integers and never rounds a used part up to 100 %', () => {
  assert.deepEqual([0, 0.34, 3, 12.6, 1_234_567].map(countText), ['0', '0.3', '3', '13', '1,234,567']);
  assert.deepEqual([percentText(999, 1_000), percentText(1, 0), percentText(3_000, 1_000)], ['99 %', '100 %', '300 %']);
});

test('prints shares with a digit below 10 %, and none of nothing', () => {
  assert.deepEqual(
    [shareText(0, 0), shareText(0, 7), shareText(4, 1_000), shareText(1, 2), shareText(9_999, 10_000)],
    ['-', '0 %', '0.4 %', '50 %', '100 %'],
  );
});

test('weir top shows requests per second and the share of 5xx within 80 columns', () => {
  const rate = {
    inBitsPerSecond: 987_600_000,
    outBitsPerSecond: 998_700_000,
    newConnectionsPerSecond: 12_345,
    requestsPerSecond: 98_765,
    serverErrorsPerSecond: 1_234,
  };
  const text = topText(
    {
      at: '2026-01-01T00:00:00Z',
      tenants: [{ name: 'shop', ...rate }],
      services: [{ tenant: 'shop', namespace: 'shop', name: 'checkout-frontend', ...rate }],
    },
    false,
  );
  const [, header = '', , service = ''] = text.split('\n');
  assert.match(header, /^TENANT \/ SERVICE +IN +OUT +CONN\/S +REQ\/S +5XX$/);
  assert.match(service, /^ {2}shop\/checkout-frontend +988 Mbit\/s +999 Mbit\/s +12,345 +98,765 +1\.2 %$/);
  assert.ok(Math.max(...text.split('\n').map((line) => line.length)) <= 80, text);
});

test('weir explain shows the requests of the month by code class if there are any', () => {
  const linesOf = (month: Counters): string[] =>
    explanationText({ ...EXPLAINED, month }, false)
      .split('\n')
      .filter((line) => line.includes('request'));
  const total = '  this month: 0 B in, 0 B out, 0 connections, ';
  assert.deepEqual(linesOf(ZERO_COUNTERS), [`${total}0 requests`]);
  assert.deepEqual(linesOf(countersFrom([0, 0, 0, 1_236, 1_234, 0, 0, 0, 2])), [
    `${total}1,236 requests`,
    '  requests by code class: 1,234 2xx, 2 none',
  ]);
});

test('weir explain shows refused clients by reason, the most frequent first, if there are any', () => {
  const linesOf = (over: Partial<ServiceExplanation>): string[] => {
    const lines = explanationText({ ...EXPLAINED, ...over }, false).split('\n');
    const title = lines.indexOf('Refused clients');
    return title < 0 ? [] : lines.slice(title + 1).filter((line) => line !== '');
  };
  const refused = { 'no-endpoints': 34, 'rate-limit': 1_200 };
  const rate = { ...EXPLAINED.rate, refusedPerSecond: { 'rate-limit': 0.3 } };
  assert.deepEqual(linesOf({ month: ZERO_COUNTERS, refusedToday: {} }), []);
  assert.deepEqual(linesOf({ month: countersFrom([], refused), refusedToday: {}, rate }), [
    '  now, per second: 0.3 rate-limit',
    '  today (UTC): none',
    '  this month: 1,200 rate-limit, 34 no-endpoints',
  ]);
});

test('weir top --refused shows only tenants and Services that refuse clients, those with the most first', () => {
  const { rate } = EXPLAINED;
  const refusing = (count: number): Rate => ({ ...rate, refusedPerSecond: { 'rate-limit': count, 'cut-off': 0.3 } });
  const frame = {
    at: '2026-01-01T00:00:00Z',
    tenants: [
      { name: 'game', ...refusing(1) },
      { name: 'idle', ...rate },
      { name: 'shop', ...refusing(12) },
    ],
    services: [
      { tenant: 'shop', namespace: 'shop', name: 'api', ...rate },
      { tenant: 'shop', namespace: 'shop', name: 'web', ...refusing(12) },
    ],
  };
  assert.equal(
    refusalText(sortedFrame(frame, { sort: 'refused' }), false),
    [
      '2026-01-01T00:00:00Z',
      'TENANT / SERVICE   REFUSED/S   REASONS',
      'shop                      12   12 rate-limit, 0.3 cut-off',
      '  shop/web                12   12 rate-limit, 0.3 cut-off',
      'game                     1.3   1 rate-limit, 0.3 cut-off',
      '',
    ].join('\n'),
  );
  const idle = { ...frame, tenants: [{ name: 'idle', ...rate }], services: [] };
  assert.match(refusalText(idle, false), /\nno client is being refused\n$/);
});

test('makes columns as wide as their widest cell without counting colour codes', () => {
  const rows = [
    { name: '\u001b[32mweb\u001b[39m', bytes: '5 B' },
    { name: 'a-long-name', bytes: '100 kB' },
  ];
  const text = tableText(
    [
      { title: 'NAME', value: (row) => row.name },
      { title: 'BYTES', value: (row) => row.bytes, align: 'right' },
    ],
    rows,
  );
  assert.equal(text, 'NAME           BYTES\n\u001b[32mweb\u001b[39m              5 B\na-long-name   100 kB\n');
});

test('removes control characters that a tenant wrote from table cells', () => {
  const evil = 'a\u001b[2J\u001b]0;title\u0007b\nc\u009bd\u202e\u2066';
  const text = tableText([{ title: 'MESSAGE', value: (row: string) => row }], [evil]);
  assert.equal(text, 'MESSAGE\na[2J]0;titleb cd\n');
});

const NO_SERVICES = {
  total: 0,
  served: 0,
  withoutEndpoints: 0,
  refused: 0,
  withoutNodes: 0,
  invalid: 0,
  withoutClass: 0,
  ofOtherClass: 0,
  otherClasses: [],
  ignored: 0,
  ofOtherType: 0,
};

test('removes control characters from the subject and message of a problem and from ignored kinds', () => {
  const evil = 'a\u001b[2J\nfake\u001b[8m';
  const problem = { code: 'InvalidObject', subject: evil, severity: 'error', heals: false, message: evil } as const;
  const services = { ...NO_SERVICES, total: 1, ofOtherClass: 1, otherClasses: [evil] };
  const run = { table: tableToJson(EMPTY_TABLE), statuses: [], problems: [problem], ignored: { [evil]: 1 }, services };
  const printed = 'a[2J fake[8m';
  assert.equal(
    dryRunText(run, false),
    `error: ${printed}: InvalidObject: ${printed}\n\nIgnored objects of kinds that Weir does not read: 1 ${printed}\n1 Service: 0 served, 1 names another class (${printed})\n`,
  );
});

test('removes control characters from the subject of a resolved problem', () => {
  const text = resolvedProblemText({ code: 'InvalidObject', subject: 'a\u001b[2J\nfake' }, colourizeFor(false));
  assert.equal(text, 'resolved: a[2J fake: InvalidObject');
});

test('uses colours only on a terminal and without NO_COLOR', () => {
  assert.equal(wantsColour({}, true), true);
  assert.equal(wantsColour({}, false), false);
  assert.equal(wantsColour({ NO_COLOR: '1' }, true), false);
  assert.equal(wantsColour({ NO_COLOR: '' }, true), true);
  assert.equal(wantsColour({ TERM: 'dumb' }, true), false);
});

test('weir explain lists ten items of a long list and counts the rest', () => {
  const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `h${index}.example`);
  const hosts = names(12);
  const ready = hosts.map((address) => ({ address, port: 80 }));
  const settings = { ...DEFAULT_SERVICE_SETTINGS, hosts, sourceRanges: ['10.0.0.0/8'], proxyProtocol: 'v2' as const };
  const text = explanationText(
    { ...EXPLAINED, settings, endpointList: [{ ...PORT, ready, terminating: [], unready: 0 }] },
    false,
  );
  const listed = names(10).join(', ');
  assert.match(text, new RegExp(`^  hosts ${listed} and 2 more$`, 'm'));
  assert.match(text, /^ {2}clients from 10\.0\.0\.0\/8$/m);
  assert.match(text, /^ {2}endpoints receive the client's address in a header of the PROXY protocol v2$/m);
  assert.match(text, /h9\.example:80 and 2 more\)$/m);
});

test('weir explain shows the request, timing and drain timeout of a health check', () => {
  const timing = { intervalMs: 1_000, timeoutMs: 500, healthyThreshold: 1, unhealthyThreshold: 3 };
  const linesOf = (healthCheck: HealthCheckSettings): string[] => {
    const settings = { ...DEFAULT_SERVICE_SETTINGS, healthCheck };
    return explanationText({ ...EXPLAINED, settings }, false)
      .split('\n')
      .filter((line) => line.includes('health-check'));
  };
  const timingText = 'every 1s, timeout 500ms; unhealthy after 3 failed checks, healthy after 1 passed check';
  assert.deepEqual(linesOf({ kind: 'tcp', ...timing }), [`  health-check tcp ${timingText}`]);
  assert.deepEqual(linesOf({ kind: 'http', path: '/', ...timing }), [`  health-check http / ${timingText}`]);
  assert.deepEqual(linesOf({ kind: 'tcp', grpcService: '', ...timing }), [`  health-check grpc ${timingText}`]);
  const ofService = { kind: 'tcp', grpcService: 'shop.v1.Orders', ...timing } as const;
  assert.deepEqual(linesOf(ofService), [`  health-check grpc shop.v1.Orders ${timingText}`]);
  assert.deepEqual(linesOf({ kind: 'http', path: '/', overTls: true, ...timing, drainTimeoutMs: 2_000 }), [
    `  health-check https / ${timingText}`,
    '  health-check-drain-timeout 2s: connections to an unhealthy endpoint are reset after this time, if another endpoint works',
  ]);
});

test('weir explain shows the limits of new connections', () => {
  const limits = {
    ...DEFAULT_SERVICE_SETTINGS.limits,
    newConnectionsPerSecond: 1_500,
    newConnectionsPerSecondPerClient: 10,
  };
  const settings = { ...DEFAULT_SERVICE_SETTINGS, limits };
  const lines = explanationText({ ...EXPLAINED, settings, limits: {} }, false).split('\n');
  assert.deepEqual(
    lines.filter((line) => line.includes('new connections')),
    [
      '  at most 1,500 new connections per second on all proxies together',
      '  at most 10 new connections per second and client on each proxy',
    ],
  );
});

test('weir explain shows the limits of requests, the sticky cookie and the error pages', () => {
  const limits = { ...DEFAULT_SERVICE_SETTINGS.limits, requestsPerSecond: 1_500 };
  const http = { maxBodyBytes: 10_000_000, requestTimeoutMs: 90_000, stickyCookie: 'shop', errorPages: 'pages' };
  const settings = { ...DEFAULT_SERVICE_SETTINGS, ...http, limits };
  const lines = explanationText({ ...EXPLAINED, settings, limits: { requestsPerSecond: 2_000 } }, false).split('\n');
  assert.deepEqual(
    lines.filter((line) => /request|cookie|error pages/.test(line) && !line.includes('this month')),
    [
      '  request-timeout 1m30s',
      '  bodies of requests have at most 10.0 MB',
      '  cookie shop binds each client to an endpoint',
      '  error pages of ConfigMap pages',
      '  at most 2,000 requests per second on all proxies together',
      '  at most 1,500 requests per second on all proxies together',
    ],
  );
});

test('weir explain shows the certificates of both sides of TLS to the endpoints', () => {
  const backend = { caSecret: 'pods', certificateSecret: 'proxies', serverName: 'shop.internal', ports: [443] };
  const tls = { secret: 'web', ports: [{ port: 443, alpn: [] }], clientCaSecret: null, backend };
  const text = explanationText({ ...EXPLAINED, settings: { ...DEFAULT_SERVICE_SETTINGS, tls } }, false);
  assert.match(
    text,
    /requests at 443\/TCP are encrypted again; endpoints must present a certificate for shop\.internal of a CA in Secret pods\n +endpoints get the certificate of Secret proxies\n/,
  );
});

const PORT = { port: 80, protocol: 'TCP' as const };
const EXPLAINED: ServiceExplanation = {
  uid: 'u',
  namespace: 'a',
  name: 'web',
  tenant: 'a',
  policy: null,
  state: 'Programmed',
  reason: 'Programmed',
  message: '',
  addresses: [],
  ports: [],
  portErrors: [],
  endpoints: { ready: 0, total: 0 },
  conditions: [],
  nodes: [],
  problems: [],
  endpointList: [],
  unhealthyEndpoints: [],
  settings: DEFAULT_SERVICE_SETTINGS,
  suspensions: [],
  limits: {},
  used: { services: 1, ports: 1, trafficThisMonth: 0 },
  month: null,
  refusedToday: null,
  rate: {
    inBitsPerSecond: 0,
    outBitsPerSecond: 0,
    newConnectionsPerSecond: 0,
    requestsPerSecond: 0,
    serverErrorsPerSecond: 0,
  },
};
