import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesOf, type ServiceSettings } from '@weir/model';
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
