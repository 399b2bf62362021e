import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CertificateEntry,
  DEFAULT_FLEET_SETTINGS,
  entriesOf,
  type SecretObject,
  type ServiceEntry,
} from '@weir/model';
import { ManualClock } from '@weir/runtime';
import type { MemoryStore } from '@weir/store';
import { startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const settings = { ...DEFAULT_FLEET_SETTINGS, nodesPerService: 1, secretAccess: { kind: 'cluster' } } as const;
const nodes = [nodeObject('a', '10.0.0.1')];
const services = [
  serviceObject('web', {
    annotations: { 'weir.dev/tls-secret': 'tls' },
    ports: [{ name: null, port: 443, protocol: 'TCP', appProtocol: null, nodePort: null }],
  }),
];
const clock = (): ManualClock => new ManualClock(0);

/** Good for 100 seconds from the start of the clock. */
const secret: SecretObject = {
  namespace: 'shop',
  name: 'tls',
  certificate: {
    kind: 'good',
    chain: 'the chain',
    keyDigest: 'digest',
    sealedKey: 'sealed',
    notBefore: 0,
    notAfter: 100_000,
  },
  authorities: null,
};

async function inForce(store: MemoryStore): Promise<[ServiceEntry | undefined, CertificateEntry | undefined]> {
  const copy = await store.table.read();
  assert.ok(copy);
  return [entriesOf(copy.table, 'service')[0], entriesOf(copy.table, 'certificate')[0]];
}

test('a certificate is told of when its time comes, though nothing else happens, and serves on', async (context) => {
  const source = new FakeSource({ nodes, services, secrets: [secret] });
  const { store, advance } = await startControllerHarness(context, { source, settings, clock: clock() });
  const said = async (): Promise<readonly unknown[]> => {
    const [service, certificate] = await inForce(store);
    return [service?.accepted.reason, service?.degraded?.[0]?.reason, certificate?.chain];
  };
  await advance(79_900);
  assert.deepEqual(await said(), ['Accepted', undefined, 'the chain']);
  await advance(200);
  assert.deepEqual(await said(), ['Accepted', 'CertificateExpiring', 'the chain']);
  await advance(21_000);
  const [service, certificate] = await inForce(store);
  assert.equal(service?.accepted.reason, 'InvalidCertificate');
  assert.equal(certificate?.chain, 'the chain');
});

test('a controller that begins without the right to read Secrets leaves certificates and keys as they are', async (context) => {
  const source = new FakeSource({ nodes, services, secrets: [secret] });
  const first = await startControllerHarness(context, { source, settings, clock: clock() });
  const before = await inForce(first.store);
  assert.equal(before[1]?.sealedKey, 'sealed');
  await first.controller.close();
  const unread = new FakeSource({ nodes, services, secrets: [], unreadSecrets: 'everywhere' });
  const { store, clock: time } = first;
  const second = await startControllerHarness(context, { source: unread, settings, store, clock: time });
  const [service, certificate] = await inForce(store);
  assert.deepEqual(certificate, before[1]);
  assert.equal(service?.accepted.reason, 'SecretForbidden');
  unread.set({ secrets: [secret], unreadSecrets: new Set() });
  await second.advance(10);
  assert.deepEqual(await inForce(store), before);
});
