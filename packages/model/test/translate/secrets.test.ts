import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  allocationsFor,
  type CertificateEntry,
  type CertificateValidity,
  certificateId,
  DEFAULT_FLEET_SETTINGS,
  decodeEntry,
  encodeEntry,
  entriesOf,
  type FleetSettings,
  NO_ALLOCATIONS,
  type SecretObject,
  type ServiceObject,
  type Snapshot,
  type Translation,
  Translator,
} from '@weir/model';
import { port, secret, service, slice, snapshotOf } from '../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const settings: FleetSettings = { ...DEFAULT_FLEET_SETTINGS, nodesPerService: 1, secretAccess: { kind: 'cluster' } };
const MAY_2030 = 1_903_910_400_000;

function web(annotations: Record<string, string> = {}, more: Partial<ServiceObject> = {}): ServiceObject {
  const named = Object.entries({ 'tls-secret': 'web-tls', ...annotations }).map(([name, value]) => [
    `weir.dev/${name}`,
    value,
  ]);
  return service('shop/web', { ports: [port(443)], annotations: Object.fromEntries(named), ...more });
}
const given = (secrets: readonly SecretObject[], more: Partial<Snapshot> = {}): Partial<Snapshot> => ({
  settings,
  services: [web()],
  secrets,
  ...more,
});
function certificateOf({ table }: Translation): CertificateEntry | undefined {
  const entry = table.entries.get(certificateId('uid-shop-web'));
  return entry?.kind === 'certificate' ? entry : undefined;
}
const expires = (validity: CertificateValidity): Pick<Snapshot, 'validity'> => ({
  validity: new Map([['shop/web-tls', validity]]),
});

describe('a Service that terminates TLS', () => {
  test('gets the certificate of its Secret, with the key still sealed', () => {
    const translation = translateFresh(given([secret('shop/web-tls')]));
    assert.equal(reasonOf(translation, 'shop/web'), 'Accepted');
    assert.deepEqual(certificateOf(translation), {
      kind: 'certificate',
      id: 'certificate/uid-shop-web',
      service: 'uid-shop-web',
      chain: 'chain of shop/web-tls',
      keyDigest: 'digest of shop/web-tls',
      sealedKey: 'key of shop/web-tls',
      notAfter: MAY_2030,
      clientAuthorities: null,
    });
    assert.deepEqual(statusOf(translation, 'shop/web').degraded, []);
  });

  test('has an entry that proxies without TLS termination cannot decode', () => {
    const { table } = translateFresh(given([secret('shop/web-tls')]));
    const entry = table.entries.get('service/uid-shop-web');
    assert.ok(entry !== undefined);
    const { v } = JSON.parse(encodeEntry(entry));
    assert.equal(v, 3);
    assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
  });

  test('waits for a missing Secret, reads how to create it, and is served after that', () => {
    const waiting = translateFresh(given([secret('other/web-tls')]));
    assert.equal(reasonOf(waiting, 'shop/web'), 'SecretNotFound');
    assert.match(
      messageOf(waiting, 'shop/web'),
      /"web-tls" .* not exist in namespace "shop"; create it: kubectl create secret tls web-tls .* -n shop/,
    );
    assert.deepEqual(portsOf(waiting, 'shop/web'), []);
    assert.equal(reasonOf(translateAfter(waiting, given([secret('shop/web-tls')])), 'shop/web'), 'Accepted');
  });

  test('keeps its certificate when the Secret is deleted', () => {
    const served = translateFresh(given([secret('shop/web-tls')]));
    const after = translateAfter(served, given([]));
    assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
    assert.match(
      messageOf(after, 'shop/web'),
      /; meanwhile the last accepted settings stay in effect, with a certificate that expires on 2030-05-02$/,
    );
    assert.deepEqual(certificateOf(after), certificateOf(served));
    assert.deepEqual(portsOf(after, 'shop/web'), ['n1:443']);
  });

  test('keeps the former certificate while the newly requested Secret is missing', () => {
    const served = translateFresh(given([secret('shop/web-tls')]));
    const after = translateAfter(
      served,
      given([secret('shop/web-tls')], { services: [web({ 'tls-secret': 'new-tls' })] }),
    );
    assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
    assert.deepEqual(certificateOf(after), certificateOf(served));
  });

  test('opens no new port without TLS while its settings are refused or invalid', () => {
    const before = translateFresh(
      given([], { services: [service('shop/web', { ports: [port(8080, { name: 'http' })] })] }),
    );
    const ports = [port(8080, { name: 'http' }), port(443, { name: 'https' }), port(9000, { name: 'more' })];
    const after = translateAfter(before, given([], { services: [web({}, { ports })] }));
    assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
    assert.match(messageOf(after, 'shop/web'), /; meanwhile the last accepted settings stay in effect$/);
    assert.deepEqual(portsOf(after, 'shop/web'), ['n1:8080', 'n1:9000']);
    const { ports: portStatuses } = statusOf(after, 'shop/web');
    assert.deepEqual(
      portStatuses.map(({ error }) => error?.reason),
      [undefined, 'SecretNotFound', undefined],
    );
    const mistaken = translateAfter(before, given([], { services: [web({ 'tls-ports': 'nonsense' }, { ports })] }));
    assert.equal(reasonOf(mistaken, 'shop/web'), 'InvalidAnnotation');
    assert.deepEqual(portsOf(mistaken, 'shop/web'), ['n1:8080']);
    const healed = translateAfter(after, given([secret('shop/web-tls')], { services: [web({}, { ports })] }));
    assert.deepEqual(portsOf(healed, 'shop/web'), ['n1:443', 'n1:8080', 'n1:9000']);
  });

  test('does not open the port to which TLS moves without TLS', () => {
    const served = translateFresh(given([secret('shop/web-tls')]));
    const moved = web({ 'tls-secret': 'new-tls', 'tls-ports': '8443' }, { ports: [port(8443)] });
    const after = translateAfter(served, given([secret('shop/web-tls')], { services: [moved] }));
    assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
    assert.deepEqual(portsOf(after, 'shop/web'), []);
  });

  test('gets a renewed certificate while another annotation is invalid', () => {
    const served = translateFresh(given([secret('shop/web-tls')]));
    const renewed = secret('shop/web-tls', { certificate: { ...good('new'), kind: 'good' } });
    const after = translateAfter(served, given([renewed], { services: [web({ algorithm: 'nonsense' })] }));
    assert.equal(reasonOf(after, 'shop/web'), 'InvalidAnnotation');
    assert.equal(certificateOf(after)?.chain, 'chain of new');
  });

  test('loses its certificate entry when it no longer requests TLS', () => {
    const served = translateFresh(given([secret('shop/web-tls')]));
    const after = translateAfter(
      served,
      given([secret('shop/web-tls')], { services: [service('shop/web', { ports: [port(443)] })] }),
    );
    assert.equal(certificateOf(after), undefined);
  });

  test('is refused with the reason if its Secret is unusable', () => {
    const cases: readonly [Partial<SecretObject>, RegExp][] = [
      [
        { certificate: null },
        /Secret "web-tls" of annotation weir\.dev\/tls-secret has neither tls\.crt nor tls\.key; correct/,
      ],
      [
        { certificate: { kind: 'unusable', why: 'has a tls.crt that is not PEM' } },
        /"web-tls" .* has a tls\.crt that is not PEM; correct/,
      ],
    ];
    for (const [more, expected] of cases) {
      const translation = translateFresh(given([secret('shop/web-tls', more)]));
      assert.equal(reasonOf(translation, 'shop/web'), 'InvalidCertificate');
      assert.match(messageOf(translation, 'shop/web'), expected);
      assert.equal(certificateOf(translation), undefined);
    }
  });

  test('refuses a certificate that is not valid yet or has expired, and keeps the former certificate', () => {
    const secrets = [secret('shop/web-tls')];
    const early = translateFresh(given(secrets, expires('early')));
    assert.match(messageOf(early, 'shop/web'), /becomes valid at 1970-01-01T00:00 UTC and is not used before/);
    const served = translateAfter(early, given(secrets));
    assert.equal(reasonOf(served, 'shop/web'), 'Accepted');
    const over = translateAfter(served, given(secrets, expires('expired')));
    assert.equal(reasonOf(over, 'shop/web'), 'InvalidCertificate');
    assert.match(
      messageOf(over, 'shop/web'),
      /expired on 2030-05-02; put a new certificate into the Secret; meanwhile/,
    );
    assert.deepEqual(certificateOf(over), certificateOf(served));
  });

  test('warns of a certificate that expires soon until the certificate is renewed', () => {
    const soon = translateFresh(given([secret('shop/web-tls')], expires('expiring')));
    assert.equal(reasonOf(soon, 'shop/web'), 'Accepted');
    const [degraded] = statusOf(soon, 'shop/web').degraded;
    assert.equal(degraded?.reason, 'CertificateExpiring');
    assert.match(degraded?.message ?? '', /Secret "web-tls" expires on 2030-05-02; renew it/);
    assert.deepEqual(statusOf(translateAfter(soon, given([secret('shop/web-tls')])), 'shop/web').degraded, []);
  });

  test('is served only with the client CAs that it names', () => {
    const services = [web({ 'client-ca-secret': 'clients' })];
    const own = secret('shop/web-tls');
    assert.equal(reasonOf(translateFresh(given([own], { services })), 'shop/web'), 'SecretNotFound');
    const bad = translateFresh(given([own, secret('shop/clients', { authorities: null })], { services }));
    assert.equal(reasonOf(bad, 'shop/web'), 'InvalidCertificate');
    assert.match(messageOf(bad, 'shop/web'), /"clients" of annotation weir\.dev\/client-ca-secret has no ca\.crt/);
    const cas = secret('shop/clients', { certificate: null, authorities: { kind: 'good', certificates: 'our CA' } });
    assert.equal(certificateOf(translateFresh(given([own, cas], { services })))?.clientAuthorities, 'our CA');
  });

  test('keeps its client CAs when their Secret is lost', () => {
    const services = [web({ 'client-ca-secret': 'clients' })];
    const cas = secret('shop/clients', { authorities: { kind: 'good', certificates: 'our CA' } });
    const served = translateFresh(given([secret('shop/web-tls'), cas], { services }));
    const renewed = secret('shop/web-tls', { certificate: good('new') });
    const after = translateAfter(served, given([renewed], { services }));
    assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
    assert.deepEqual(certificateOf(after), certificateOf(served));
  });
});

describe('Secrets that the controller may not read', () => {
  const reasonWith = (access: FleetSettings['secretAccess'], more: Partial<Snapshot> = {}): [string, string] => {
    const { secretAccess: _, ...others } = settings;
    const translation = translateFresh({
      ...given([secret('shop/web-tls')], more),
      settings: { ...others, ...(access !== undefined && { secretAccess: access }) },
    });
    return [reasonOf(translation, 'shop/web'), messageOf(translation, 'shop/web')];
  };

  test('are the Secrets of all namespaces by default', () => {
    for (const access of [undefined, { kind: 'none' } as const]) {
      const [reason, message] = reasonWith(access);
      assert.equal(reason, 'SecretForbidden');
      assert.match(
        message,
        /"web-tls" .* this fleet reads no Secrets; ask the operator to set tls\.secretAccess, or use weir\.dev\/tls-passthrough/,
      );
    }
  });

  test('are the Secrets of namespaces that are not listed', () => {
    assert.deepEqual(reasonWith({ kind: 'namespaces', namespaces: ['shop'] })[0], 'Accepted');
    const [reason, message] = reasonWith({ kind: 'namespaces', namespaces: ['other'] });
    assert.equal(reason, 'SecretForbidden');
    assert.match(message, /"shop" is not among them; ask the operator to add it to tls\.secretNamespaces/);
    assert.ok(!message.includes('other'), 'does not name the namespaces whose Secrets are read');
  });

  test('are refused if the controller lacks the permission, while a served Service keeps its certificate', () => {
    for (const unreadableSecrets of ['everywhere', new Set(['shop'])] as const) {
      assert.equal(reasonWith({ kind: 'cluster' }, { unreadableSecrets })[0], 'SecretForbidden');
      const served = translateFresh(given([secret('shop/web-tls')]));
      const after = translateAfter(served, given([], { unreadableSecrets }));
      assert.match(messageOf(after, 'shop/web'), /cannot be read: the controller lacks the permission/);
      assert.deepEqual(certificateOf(after), certificateOf(served));
    }
    assert.equal(reasonWith({ kind: 'cluster' }, { unreadableSecrets: new Set(['other']) })[0], 'Accepted');
  });
});

describe('a Service with several Secrets', () => {
  const several = web({ 'tls-secret': 'web-tls, rsa-tls,web-tls' });
  const both = [secret('shop/rsa-tls'), secret('shop/web-tls')];
  const certificatesOf = ({ table }: Translation): readonly [string, string][] =>
    entriesOf(table, 'certificate').map(({ id, chain }) => [id, chain]);
  const ids = ['certificate/uid-shop-web', 'certificate/uid-shop-web/1'] as const;

  test('gets a certificate entry for each Secret, in the order of the annotation', () => {
    const translation = translateFresh(given(both, { services: [several] }));
    assert.equal(reasonOf(translation, 'shop/web'), 'Accepted');
    const expected = [
      [ids[0], 'chain of shop/web-tls'],
      [ids[1], 'chain of shop/rsa-tls'],
    ];
    assert.deepEqual(certificatesOf(translation), expected);
    const allocated = allocationsFor(translation.table).services.get('uid-shop-web')?.certificates;
    assert.deepEqual(
      allocated?.map(({ id, chain }) => [id, chain]),
      expected,
    );
    const entry = translation.table.entries.get('service/uid-shop-web');
    assert.ok(entry);
    assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
  });

  test('is refused with the name of the Secret that is missing', () => {
    const translation = translateFresh(given([secret('shop/web-tls')], { services: [several] }));
    assert.equal(reasonOf(translation, 'shop/web'), 'SecretNotFound');
    assert.match(
      messageOf(translation, 'shop/web'),
      /^Secret "rsa-tls" of annotation weir\.dev\/tls-secret does not exist/,
    );
    assert.deepEqual(certificatesOf(translation), []);
  });

  test('keeps the certificate of a Secret that becomes unusable, and gets the renewed certificate of another Secret', () => {
    const served = translateFresh(given(both, { services: [several] }));
    const after = translateAfter(
      served,
      given([secret('shop/web-tls', { certificate: good('new') })], { services: [several] }),
    );
    assert.equal(reasonOf(after, 'shop/web'), 'SecretNotFound');
    assert.match(messageOf(after, 'shop/web'), /"rsa-tls".*, with a certificate that expires on 2030-05-02$/);
    assert.deepEqual(certificatesOf(after), [
      [ids[0], 'chain of new'],
      [ids[1], 'chain of shop/rsa-tls'],
    ]);
  });

  test('warns about the certificate that expires first', () => {
    const sooner = secret('shop/rsa-tls', { certificate: { ...good('rsa'), notAfter: MAY_2030 - 86_400_000 } });
    const validity = new Map<string, CertificateValidity>([
      ['shop/web-tls', 'expiring'],
      ['shop/rsa-tls', 'expiring'],
    ]);
    const translation = translateFresh(given([sooner, secret('shop/web-tls')], { services: [several], validity }));
    const [{ message = '' } = {}] = statusOf(translation, 'shop/web').degraded;
    assert.match(message, /Secret "rsa-tls" expires on 2030-05-01/);
  });

  test('loses the entry of a Secret that it no longer names', () => {
    const served = translateFresh(given(both, { services: [several] }));
    const after = translateAfter(served, given(both));
    assert.deepEqual(certificatesOf(after), [[ids[0], 'chain of shop/web-tls']]);
  });
});

describe('a Service that encrypts to its pods again', () => {
  const encrypting = web(
    { 'backend-tls-ca': 'pods', 'backend-tls-server-name': 'shop.internal' },
    { ports: [port(443, { appProtocol: 'https' })] },
  );
  const authorities = { kind: 'good' as const, certificates: 'CAs of the pods' };
  const pods = secret('shop/pods', { certificate: null, authorities });

  test('gets the CAs with its certificate, in an entry that older proxies cannot decode', () => {
    const translation = translateFresh(given([secret('shop/web-tls'), pods], { services: [encrypting] }));
    assert.equal(reasonOf(translation, 'shop/web'), 'Accepted');
    const entry = certificateOf(translation);
    assert.equal(entry?.backendAuthorities, 'CAs of the pods');
    assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
    const serviceEntry = translation.table.entries.get('service/uid-shop-web');
    assert.ok(serviceEntry);
    assert.equal(JSON.parse(encodeEntry(serviceEntry)).v, 5);
    assert.deepEqual(decodeEntry(encodeEntry(serviceEntry)), serviceEntry);
  });

  test('is refused without the CAs, and keeps the last ones', () => {
    const missing = translateFresh(given([secret('shop/web-tls')], { services: [encrypting] }));
    assert.equal(reasonOf(missing, 'shop/web'), 'SecretNotFound');
    assert.match(
      messageOf(missing, 'shop/web'),
      /"pods" of annotation weir\.dev\/backend-tls-ca .*configmap pods --from-file=ca\.crt/,
    );
    const served = translateFresh(given([secret('shop/web-tls'), pods], { services: [encrypting] }));
    const broken = secret('shop/pods', { certificate: null, authorities: null });
    const after = translateAfter(served, given([secret('shop/web-tls'), broken], { services: [encrypting] }));
    assert.equal(reasonOf(after, 'shop/web'), 'InvalidCertificate');
    assert.equal(certificateOf(after)?.backendAuthorities, 'CAs of the pods');
  });

  test('gets changed CAs', () => {
    const served = translateFresh(given([secret('shop/web-tls'), pods], { services: [encrypting] }));
    const renewed = { ...pods, authorities: { ...authorities, certificates: 'new CAs' } };
    const after = translateAfter(served, given([secret('shop/web-tls'), renewed], { services: [encrypting] }));
    assert.equal(certificateOf(after)?.backendAuthorities, 'new CAs');
  });
});

test('changes only the entries of Services that name a changed Secret', () => {
  const translator = new Translator(settings, NO_ALLOCATIONS);
  const services = [web(), service('shop/api', { ports: [port(8443)] })];
  const before = snapshotOf(given([secret('shop/web-tls')], { services, slices: [slice('shop/web', ['10.0.0.1'])] }));
  const first = translator.translate(before).table;
  const renewed = secret('shop/web-tls', { certificate: good('new') });
  const second = translator.translate({ ...before, secrets: [renewed] }).table;
  const changed = [...second.entries].filter(([id, entry]) => first.entries.get(id) !== entry).map(([id]) => id);
  assert.deepEqual(changed, ['certificate/uid-shop-web']);
  const third = translator.translate({ ...before, secrets: [renewed, secret('shop/another')] }).table;
  assert.equal(third, second, 'a Secret that no Service names changes nothing');
});

test('includes the certificate in the allocations that a new leader reads from the table', () => {
  const { table } = translateFresh(given([secret('shop/web-tls')]));
  assert.equal(allocationsFor(table).services.get('uid-shop-web')?.certificates[0]?.chain, 'chain of shop/web-tls');
});

function good(name: string) {
  return {
    kind: 'good' as const,
    chain: `chain of ${name}`,
    keyDigest: `digest of ${name}`,
    sealedKey: `key of ${name}`,
    notBefore: 0,
    notAfter: MAY_2030,
  };
}
