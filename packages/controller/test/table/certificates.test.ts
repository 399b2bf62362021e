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

/** A Secret whose certificate is valid for 100 s from the start of the clock. */
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

async function publishedEntries(store: MemoryStore): Promise<[ServiceEntry | undefined, CertificateEntry | undefined]> {
  const stored = await store.table.read();
  assert.ok(stored);
  return [entriesOf(stored.table, 'service')[0], entriesOf(stored.table, 'certificate')[0]];
}

test('reports a certificate that expires although no object changes, and keeps serving it', async (context) => {
  const source = new FakeSource({ nodes, services, secrets: [secret] });
  const { store, advance } = await startControllerHarness(context, { source, settings, clock: clock() });
  const readReasons = async (): Promise<readonly unknown[]> => {
    const [service, certificate] = await publishedEntries(store);
    return [service?.accepted.reason, service?.degraded?.[0]?.reason, certificate?.chain];
  };
  await advance(79_900);
  assert.deepEqual(await readReasons(), ['Accepted', undefined, 'the chain']);
  await advance(200);
  assert.deepEqual(await readReasons(), ['Accepted', 'CertificateExpiring', 'the chain']);
  await advance(21_000);
  const [service, certificate] = await publishedEntries(store);
  assert.equal(service?.accepted.reason, 'InvalidCertificate');
  assert.equal(certificate?.chain, 'the chain');
});

test('keeps the published certificates if the controller may not read Secrets at its start', async (context) => {
  const source = new FakeSource({ nodes, services, secrets: [secret] });
  const first = await startControllerHarness(context, { source, settings, clock: clock() });
  const before = await publishedEntries(first.store);
  assert.equal(before[1]?.sealedKey, 'sealed');
  await first.controller.close();
  const unreadable = new FakeSource({ nodes, services, secrets: [], unreadableSecrets: 'everywhere' });
  const { store, clock: time } = first;
  const second = await startControllerHarness(context, { source: unreadable, settings, store, clock: time });
  const [service, certificate] = await publishedEntries(store);
  assert.deepEqual(certificate, before[1]);
  assert.equal(service?.accepted.reason, 'SecretForbidden');
  unreadable.set({ secrets: [secret], unreadableSecrets: new Set() });
  await second.advance(10);
  assert.deepEqual(await publishedEntries(store), before);
});
