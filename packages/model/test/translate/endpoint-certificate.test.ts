import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allocationsFor,
  type CertificateEntry,
  certificateId,
  createMatcher,
  DEFAULT_FLEET_SETTINGS,
  decodeEntry,
  encodeEntry,
  endpointTlsTerms,
  type FleetSettings,
  patchMatcher,
  type SecretObject,
  type ServiceObject,
  type Snapshot,
  type Translation,
  tableOf,
} from '@weir/model';
import { port, secret, service } from '../fixtures/snapshot.ts';
import { messageOf, reasonOf, statusOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const settings: FleetSettings = { ...DEFAULT_FLEET_SETTINGS, nodesPerService: 1, secretAccess: { kind: 'cluster' } };

/** A Service whose pods demand a certificate. */
function web(annotations: Record<string, string> = {}): ServiceObject {
  const named = {
    'tls-secret': 'web-tls',
    'backend-tls-ca': 'pods',
    'backend-tls-server-name': 'shop.internal',
    'backend-tls-secret': 'proxies',
    ...annotations,
  };
  return service('shop/web', {
    ports: [port(443, { appProtocol: 'https' })],
    annotations: Object.fromEntries(Object.entries(named).map(([name, value]) => [`weir.dev/${name}`, value])),
  });
}
const FRONT = secret('shop/web-tls');
const PODS = secret('shop/pods', {
  certificate: null,
  authorities: { kind: 'good', certificates: 'CAs of the pods' },
});
const PROXIES = secret('shop/proxies');

const given = (secrets: readonly SecretObject[], more: Partial<Snapshot> = {}): Partial<Snapshot> => ({
  settings,
  services: [web()],
  secrets,
  ...more,
});
const ID = certificateId('uid-shop-web', 'endpoints');
function certificateOf({ table }: Translation): CertificateEntry | undefined {
  const entry = table.entries.get(ID);
  return entry?.kind === 'certificate' ? entry : undefined;
}

test('the certificate for endpoints has an entry that older proxies cannot decode', () => {
  const translation = translateFresh(given([FRONT, PODS, PROXIES]));
  assert.equal(reasonOf(translation, 'shop/web'), 'Accepted');
  const entry = certificateOf(translation);
  assert.deepEqual(entry, {
    kind: 'certificate',
    id: ID,
    service: 'uid-shop-web',
    chain: 'chain of shop/proxies',
    keyDigest: 'digest of shop/proxies',
    sealedKey: 'key of shop/proxies',
    notAfter: entry?.notAfter,
    clientAuthorities: null,
    forEndpoints: true,
  });
  assert.equal(JSON.parse(encodeEntry(entry)).v, 6);
  assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
});

test('routes keep the certificate for endpoints apart from the certificates for clients', () => {
  const { table } = translateFresh(given([FRONT, PODS, PROXIES]));
  const matcher = createMatcher(table, 'n1');
  const [route] = matcher.routes.values();
  assert.ok(route);
  assert.deepEqual(
    route.certificates.map(({ chain }) => chain),
    ['chain of shop/web-tls'],
  );
  assert.equal(endpointTlsTerms(route)?.certificate?.chain, 'chain of shop/proxies');
  patchMatcher(matcher, [{ kind: 'delete', id: ID }]);
  const [without] = matcher.routes.values();
  assert.ok(without);
  assert.equal(endpointTlsTerms(without)?.certificate, undefined, 'no endpoint may be connected');
  const plain = [...table.entries.values()].map((entry) =>
    entry.kind === 'service' && entry.settings?.tls?.backend !== undefined
      ? {
          ...entry,
          settings: {
            ...entry.settings,
            tls: { ...entry.settings.tls, backend: withoutCertificate(entry.settings.tls.backend) },
          },
        }
      : entry,
  );
  const [unneeded] = createMatcher(tableOf(plain), 'n1').routes.values();
  assert.equal(unneeded && endpointTlsTerms(unneeded)?.certificate, null, 'the endpoints get no certificate');
});

test('a Service is refused while the Secret is missing, and keeps the last certificate', () => {
  const missing = translateFresh(given([FRONT, PODS]));
  assert.equal(reasonOf(missing, 'shop/web'), 'SecretNotFound');
  assert.match(
    messageOf(missing, 'shop/web'),
    /"proxies" of annotation weir\.dev\/backend-tls-secret .*create it: kubectl create secret tls proxies /,
  );
  const served = translateFresh(given([FRONT, PODS, PROXIES]));
  const after = translateAfter(served, given([FRONT, PODS]));
  assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
  assert.deepEqual(certificateOf(after), certificateOf(served));
});

test('the entry follows a changed Secret, and goes with the annotation', () => {
  const served = translateFresh(given([FRONT, PODS, PROXIES]));
  const { certificate } = secret('shop/renewed');
  const renewed = translateAfter(served, given([FRONT, PODS, secret('shop/proxies', { certificate })]));
  assert.equal(certificateOf(renewed)?.chain, 'chain of shop/renewed');
  const { 'weir.dev/backend-tls-secret': _, ...annotations } = web().annotations;
  const removed = translateAfter(renewed, given([FRONT, PODS], { services: [{ ...web(), annotations }] }));
  assert.equal(reasonOf(removed, 'shop/web'), 'Accepted');
  assert.equal(certificateOf(removed), undefined);
});

test('the allocations that a new leader reads contain the certificate', () => {
  const { table } = translateFresh(given([FRONT, PODS, PROXIES]));
  assert.deepEqual(
    allocationsFor(table)
      .services.get('uid-shop-web')
      ?.certificates.map(({ chain }) => chain),
    ['chain of shop/web-tls', 'chain of shop/proxies'],
  );
});

test('an expiring and an expired certificate for endpoints are reported with their annotation', () => {
  const secrets = [FRONT, PODS, PROXIES];
  const expiring = translateFresh(given(secrets, { validity: new Map([['shop/proxies', 'expiring']]) }));
  const [degraded] = statusOf(expiring, 'shop/web').degraded;
  assert.equal(degraded?.reason, 'CertificateExpiring');
  assert.match(degraded.message, /Secret "proxies" expires on .*, because pods reject it afterwards/);
  const expired = translateFresh(given(secrets, { validity: new Map([['shop/proxies', 'expired']]) }));
  assert.equal(reasonOf(expired, 'shop/web'), 'InvalidCertificate');
  assert.match(messageOf(expired, 'shop/web'), /"proxies" \(annotation weir\.dev\/backend-tls-secret\) expired on/);
});

function withoutCertificate<T extends { readonly certificateSecret?: string }>(
  backend: T,
): Omit<T, 'certificateSecret'> {
  const { certificateSecret: _, ...rest } = backend;
  return rest;
}
