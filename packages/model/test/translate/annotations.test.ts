import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS, entriesOf, type ServiceSettings } from '@weir/model';
import { service } from '../build/snapshot.ts';
import { fresh, messageOf } from '../build/translation.ts';

type Annotations = Readonly<Record<string, string>>;

const translated = (annotations: Annotations): ReturnType<typeof fresh> => {
  const prefixed = Object.entries(annotations).map(([name, value]) => [`weir.dev/${name}`, value]);
  return fresh({ services: [service('a/web', { annotations: Object.fromEntries(prefixed) })] });
};
const settingsOf = (annotations: Annotations): ServiceSettings | null | undefined =>
  entriesOf(translated(annotations).table, 'service')[0]?.settings;
const refusalOf = (annotations: Annotations): string => {
  assert.equal(settingsOf(annotations), null);
  return messageOf(translated(annotations), 'a/web');
};

test('proxy-protocol is one of two versions', () => {
  assert.equal(settingsOf({})?.proxyProtocol, null);
  assert.equal(settingsOf({ 'proxy-protocol': 'v1' })?.proxyProtocol, 'v1');
  assert.equal(settingsOf({ 'proxy-protocol': 'v2' })?.proxyProtocol, 'v2');
  assert.equal(
    refusalOf({ 'proxy-protocol': 'true' }),
    'annotation weir.dev/proxy-protocol: "true" is not allowed; use one of v1, v2',
  );
});

test('hosts are in lower case, each once, blanks around them are taken', () => {
  const hosts = ' Shop.example.com, *.example.com,shop.EXAMPLE.com ';
  const settings = settingsOf({ 'tls-passthrough': 'true', hosts });
  assert.equal(settings?.tlsPassthrough, true);
  assert.deepEqual(settings?.hosts, ['shop.example.com', '*.example.com']);
  assert.deepEqual(settingsOf({ 'tls-passthrough': 'true' })?.hosts, []);
});

test('one wrong host refuses all, and is named', () => {
  for (const [hosts, wrong] of [
    ['a.example,b_c.example', 'b_c.example'],
    ['a.example,', ''],
    ['', ''],
    ['192.0.2.1', '192.0.2.1'],
    ['https://a.example', 'https://a.example'],
  ] as const) {
    const message = refusalOf({ 'tls-passthrough': 'true', hosts });
    assert.ok(
      message.startsWith(`annotation weir.dev/hosts: "${hosts}" is not allowed: "${wrong}" is no host; use`),
      message,
    );
  }
});

test('hosts without passthrough are refused instead of being ignored', () => {
  for (const rest of [{}, { 'tls-passthrough': 'false' }]) {
    assert.match(
      refusalOf({ hosts: 'a.example', ...rest }),
      /weir\.dev\/hosts: .* only with weir\.dev\/tls-passthrough: "true"/,
    );
  }
});

test('limits are quantities, each with a name of its own', () => {
  assert.deepEqual(
    settingsOf({
      'max-connections': '1k',
      'max-connections-per-client': '0',
      'in-bits-per-second': '1.5M',
      'out-bits-per-second': '1Gi',
    })?.limits,
    { connections: 1_000, connectionsPerClient: 0, inBitsPerSecond: 1_500_000, outBitsPerSecond: 2 ** 30 },
  );
  assert.deepEqual(settingsOf({ 'max-connections': '7' })?.limits, {
    ...DEFAULT_SERVICE_SETTINGS.limits,
    connections: 7,
  });
});

test('a limit that is no whole quantity refuses', () => {
  for (const value of ['', '-1', '0.5', '10 M', '10MB', '1e30', '9'.repeat(100)]) {
    assert.match(
      refusalOf({ 'in-bits-per-second': value }),
      /weir\.dev\/in-bits-per-second: .* is not allowed; use a whole number of bits such as 10M, 1\.5G or 1Gi/,
    );
  }
});
