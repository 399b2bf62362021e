// Services that share a host of a shared port by path prefix.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, type ServiceObject, type Snapshot, type Translation, UNRESTRICTED_GRANTS } from '@weir/model';
import {
  httpServiceOn,
  serviceOn,
  sharedPortSettings,
  sharersOf,
  translateFirst,
  translateLater,
} from '../../fixtures/shared-ports.ts';
import { namespace, policy, secret, team } from '../../fixtures/snapshot.ts';
import { messageOf, reasonOf, statusOf } from '../../fixtures/translation.ts';

const HOST = 'x.shop.example';
const fleet: Partial<Snapshot> = {
  settings: { ...sharedPortSettings, sharedPorts: [80, 443], secretAccess: { kind: 'cluster' } },
  secrets: [
    secret('a/one'),
    secret('a/two'),
    secret('a/clients', { certificate: null, authorities: { kind: 'good', certificates: 'CAs' } }),
  ],
};
const first = (services: readonly ServiceObject[], parts: Partial<Snapshot> = {}): Translation =>
  translateFirst({ ...fleet, ...parts, services });
const later = (before: Translation, services: readonly ServiceObject[]): Translation =>
  translateLater(before, { ...fleet, services });
const reasonsOf = (translation: Translation, ...paths: readonly string[]): string[] =>
  paths.map((path) => reasonOf(translation, path));
const prefixOf = ({ table }: Translation, uid: string): string | undefined =>
  entriesOf(table, 'service').find((entry) => entry.uid === uid)?.settings?.pathPrefix;

/** Returns a Service that terminates TLS at port 443. */
const tlsServiceOn = (path: string, prefix: string, tlsSecret: string, createdAt = 0): ServiceObject =>
  httpServiceOn(path, HOST, {
    prefix,
    ports: [443],
    more: { createdAt, annotations: { 'weir.dev/tls-secret': tlsSecret } },
  });

describe('a host of a shared port', () => {
  test('is shared by Services of one namespace with different path prefixes', () => {
    const translation = first([
      httpServiceOn('a/web', HOST),
      httpServiceOn('a/api', HOST, { prefix: '/api' }),
      httpServiceOn('a/docs', HOST, { prefix: '/api/docs' }),
    ]);
    assert.deepEqual(reasonsOf(translation, 'a/web', 'a/api', 'a/docs'), ['Accepted', 'Accepted', 'Accepted']);
    assert.deepEqual(sharersOf(translation), ['uid-a-api n1:80', 'uid-a-docs n1:80', 'uid-a-web n1:80']);
  });

  test('is refused with the path prefix of another Service, which the message names', () => {
    const translation = first([
      httpServiceOn('a/web', HOST, { prefix: '/api', more: { createdAt: 1 } }),
      httpServiceOn('a/api', HOST, { prefix: '/api', more: { createdAt: 2 } }),
    ]);
    assert.deepEqual(reasonsOf(translation, 'a/web', 'a/api'), ['Accepted', 'HostConflict']);
    assert.equal(
      messageOf(translation, 'a/api'),
      'host x.shop.example on port 80/TCP of pool "default" is taken by Service a/web; both Services have the path prefix "/api"; set another weir.dev/path-prefix, or use another host, or another port',
    );
    const all = first([httpServiceOn('a/web', HOST), httpServiceOn('a/xxl', HOST)]);
    assert.match(
      messageOf(all, 'a/xxl'),
      /; both Services ask for all paths; set weir.dev\/path-prefix for one of them/,
    );
  });

  test('is refused to another tenant, whatever the path prefix is, without a word about the owner', () => {
    const owner = httpServiceOn('a/web', HOST, { prefix: '/secret', more: { createdAt: 1 } });
    const translation = first([owner, httpServiceOn('b/web', HOST, { prefix: '/api', more: { createdAt: 2 } })]);
    assert.deepEqual(reasonsOf(translation, 'a/web', 'b/web'), ['Accepted', 'HostConflict']);
    assert.equal(
      messageOf(translation, 'b/web'),
      'host x.shop.example on port 80/TCP of pool "default" is taken by another tenant; use another host, or another port',
    );
  });

  test('is refused to another namespace of the same tenant', () => {
    const one = policy('one', {
      namespaceSelector: team('one'),
      tenantFrom: { kind: 'name', name: 'one' },
      grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.shop.example'] },
    });
    const services = [
      httpServiceOn('a/web', HOST, { more: { createdAt: 1 } }),
      httpServiceOn('b/api', HOST, { prefix: '/api', more: { createdAt: 2 } }),
    ];
    const namespaces = ['a', 'b'].map((name) => namespace(name, { team: 'one' }));
    const translation = first(services, { policies: [one], namespaces });
    assert.deepEqual(reasonsOf(translation, 'a/web', 'b/api'), ['Accepted', 'HostConflict']);
    assert.match(
      messageOf(translation, 'b/api'),
      /is taken by Service a\/web; only Services of one namespace can share a host; use another host/,
    );
  });

  test('is not shared with a Service whose TLS is passed through', () => {
    const translation = first([
      serviceOn('a/web', HOST, { more: { createdAt: 1 } }),
      tlsServiceOn('a/api', '/api', 'one', 2),
    ]);
    assert.deepEqual(reasonsOf(translation, 'a/web', 'a/api'), ['Accepted', 'HostConflict']);
    assert.match(
      messageOf(translation, 'a/api'),
      /to share the host by path, set appProtocol: http at port 443\/TCP of both Services, without weir.dev\/tls-passthrough/,
    );
  });

  test('is shared with TLS only if the Services ask clients for the same certificates', () => {
    const docs = tlsServiceOn('a/docs', '/docs', 'one', 2);
    const plain = httpServiceOn('a/plain', HOST, { prefix: '/plain', ports: [443], more: { createdAt: 3 } });
    const translation = first([
      tlsServiceOn('a/web', '/web', 'one', 0),
      tlsServiceOn('a/api', '/api', 'one', 1),
      { ...docs, annotations: { ...docs.annotations, 'weir.dev/client-ca-secret': 'clients' } },
      plain,
    ]);
    assert.deepEqual(reasonsOf(translation, 'a/web', 'a/api', 'a/docs', 'a/plain'), [
      'Accepted',
      'Accepted',
      'HostConflict',
      'HostConflict',
    ]);
    for (const path of ['a/docs', 'a/plain'])
      assert.match(
        messageOf(translation, path),
        /is taken by Service a\/api, Service a\/web; .* all of them have weir.dev\/tls-secret at port 443\/TCP, or none, and if they have the same weir.dev\/client-ca-secret/,
      );
  });

  test('lets its Services change their certificates one after the other', () => {
    const before = first([tlsServiceOn('a/web', '/web', 'one'), tlsServiceOn('a/api', '/api', 'one')]);
    const between = later(before, [tlsServiceOn('a/web', '/web', 'two'), tlsServiceOn('a/api', '/api', 'one')]);
    const after = later(between, [tlsServiceOn('a/web', '/web', 'two'), tlsServiceOn('a/api', '/api', 'two')]);
    for (const [translation, web, api] of [
      [before, 'one', 'one'],
      [between, 'two', 'one'],
      [after, 'two', 'two'],
    ] as const) {
      assert.deepEqual(reasonsOf(translation, 'a/web', 'a/api'), ['Accepted', 'Accepted']);
      const certificates = entriesOf(translation.table, 'certificate').map(({ service, chain }) => [service, chain]);
      assert.deepEqual(certificates.sort(), [
        ['uid-a-api', `chain of a/${api}`],
        ['uid-a-web', `chain of a/${web}`],
      ]);
    }
  });

  test('goes to a waiting Service when the owner changes its prefix, or is deleted', () => {
    const old = tlsServiceOn('a/web', '/api', 'one', 1);
    const samePath = tlsServiceOn('a/api', '/api', 'one', 2);
    const before = first([old, samePath]);
    assert.deepEqual(reasonsOf(before, 'a/web', 'a/api'), ['Accepted', 'HostConflict']);
    const moved = later(before, [tlsServiceOn('a/web', '/web', 'one', 1), samePath]);
    assert.deepEqual(reasonsOf(moved, 'a/web', 'a/api'), ['Accepted', 'Accepted']);
    assert.deepEqual(reasonsOf(later(before, [samePath]), 'a/api'), ['Accepted']);
  });

  test('goes to a waiting Service when the owner no longer asks for client certificates', () => {
    const old = tlsServiceOn('a/web', '/web', 'one', 1);
    const asking = { ...old, annotations: { ...old.annotations, 'weir.dev/client-ca-secret': 'clients' } };
    const docs = tlsServiceOn('a/docs', '/docs', 'one', 2);
    const before = first([asking, docs]);
    assert.deepEqual(reasonsOf(before, 'a/web', 'a/docs'), ['Accepted', 'HostConflict']);
    assert.deepEqual(reasonsOf(later(before, [old, docs]), 'a/web', 'a/docs'), ['Accepted', 'Accepted']);
  });

  test('keeps a served Service with its present prefix if the requested prefix is taken', () => {
    const web = httpServiceOn('a/web', HOST, { prefix: '/web' });
    const before = first([web, httpServiceOn('a/api', HOST, { prefix: '/api' })]);
    const after = later(before, [web, httpServiceOn('a/api', HOST, { prefix: '/web' })]);
    assert.deepEqual(reasonsOf(after, 'a/web', 'a/api'), ['Accepted', 'HostConflict']);
    assert.match(messageOf(after, 'a/api'), /the path prefix "\/web"; .*; meanwhile the last accepted settings stay/);
    assert.equal(prefixOf(after, 'uid-a-api'), '/api');
    assert.deepEqual(sharersOf(after), sharersOf(before));
  });

  test('stays with the namespace while one of its Services has the host', () => {
    const web = httpServiceOn('a/web', HOST, { prefix: '/web', more: { createdAt: 1 } });
    const api = httpServiceOn('a/api', HOST, { prefix: '/api', more: { createdAt: 9 } });
    const other = httpServiceOn('b/web', HOST, { more: { createdAt: 2 } });
    const before = first([web, api]);
    const waiting = later(before, [api, other]);
    assert.deepEqual(reasonsOf(waiting, 'a/api', 'b/web'), ['Accepted', 'HostConflict']);
    assert.equal(reasonOf(later(waiting, [other]), 'b/web'), 'Accepted');
  });
});

test('hosts and path prefixes allocate nothing on an exclusive port', () => {
  const translation = first([
    httpServiceOn('a/web', HOST, { prefix: '/api', ports: [8080] }),
    httpServiceOn('b/web', HOST, { prefix: '/api', ports: [8081] }),
  ]);
  assert.deepEqual(reasonsOf(translation, 'a/web', 'b/web'), ['Accepted', 'Accepted']);
  assert.deepEqual(sharersOf(translation), []);
});

test('a new HTTP port is refused while the requested settings are refused', () => {
  const served = httpServiceOn('a/web', HOST);
  const before = first([served]);
  const wrong = { 'weir.dev/hosts': HOST, 'weir.dev/path-prefix': '/api/' };
  const after = later(before, [httpServiceOn('a/web', HOST, { ports: [80, 8080], more: { annotations: wrong } })]);
  assert.equal(statusOf(after, 'a/web').ports[0]?.error, null);
  assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'InvalidAnnotation');
});
