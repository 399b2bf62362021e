// Tests a Service whose endpoints are verified by CAs in a ConfigMap.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certificateId, DEFAULT_FLEET_SETTINGS, type Snapshot, type Translation } from '@weir/model';
import { configMap, port, secret, service } from '../fixtures/snapshot.ts';
import { messageOf, reasonOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const encrypting = service('shop/web', {
  ports: [port(443, { appProtocol: 'https' })],
  annotations: {
    'weir.dev/tls-secret': 'web-tls',
    'weir.dev/backend-tls-ca': 'pods',
    'weir.dev/backend-tls-server-name': 'shop.internal',
  },
});
const TLS = secret('shop/web-tls');
const withCas = (certificates: string) => configMap('shop/pods', { authorities: { kind: 'good', certificates } });
const given = (more: Partial<Snapshot>): Partial<Snapshot> => ({
  settings: { ...DEFAULT_FLEET_SETTINGS, secretAccess: { kind: 'cluster' } },
  services: [encrypting],
  secrets: [TLS],
  configMaps: [withCas('CAs of the ConfigMap')],
  ...more,
});
function casOf({ table }: Translation): string | undefined {
  const entry = table.entries.get(certificateId('uid-shop-web'));
  return entry?.kind === 'certificate' ? entry.backendAuthorities : undefined;
}

test('gets the CAs of the ConfigMap, unless a Secret has the same name', () => {
  assert.equal(casOf(translateFresh(given({}))), 'CAs of the ConfigMap');
  const pods = secret('shop/pods', { certificate: null, authorities: { kind: 'good', certificates: 'of a Secret' } });
  assert.equal(casOf(translateFresh(given({ secrets: [TLS, pods] }))), 'of a Secret');
});

test('gets changed CAs', () => {
  const served = translateFresh(given({}));
  assert.equal(casOf(translateAfter(served, given({ configMaps: [withCas('new CAs')] }))), 'new CAs');
});

test('is refused if the ConfigMap has no CAs or cannot be read, and keeps the last CAs', () => {
  const none = given({ configMaps: [configMap('shop/pods')] });
  assert.equal(reasonOf(translateFresh(none), 'shop/web'), 'InvalidCertificate');
  assert.match(
    messageOf(translateFresh(none), 'shop/web'),
    /^ConfigMap "pods" .* has no ca\.crt; correct the ConfigMap/,
  );
  const unread = given({ configMaps: [], unreadConfigMaps: new Map([['shop/pods', 'forbidden']]) });
  assert.equal(reasonOf(translateFresh(unread), 'shop/web'), 'SecretForbidden');
  const served = translateFresh(given({}));
  for (const broken of [none, unread, given({ configMaps: [] })])
    assert.equal(casOf(translateAfter(served, broken)), 'CAs of the ConfigMap');
});
