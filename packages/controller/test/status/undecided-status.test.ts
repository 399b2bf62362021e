// A controller that starts while the store is unreachable cannot translate, and does not know what other leaders have published.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, silentLogger } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import type { Json } from '../../src/kubernetes/kube-api.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { type ObservedService, observedServiceFor } from '../../src/status/service-status.ts';
import { startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeServicesApi } from '../fixtures/fake-services-api.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

test('writes once that the fleet is unreachable to a new Service, keeps every other status, and continues when the store returns', async (context) => {
  const clock = new ManualClock();
  const log = silentLogger();
  const store = new MemoryStore({ clock });
  store.faults.goAway();
  const api = new FakeServicesApi();
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  const known = new Map<string, ObservedService | undefined>();
  api.onService = (key, raw) => {
    status.observe(key, raw);
    known.set(key, observedServiceFor(raw as Json));
  };
  const port = { name: null, protocol: 'TCP', appProtocol: null, nodePort: null };
  const services = [
    serviceObject('new', { ports: [{ ...port, port: 81 }] }),
    serviceObject('old', { publishedIPs: ['10.0.0.1'] }),
    serviceObject('left', { ports: [{ ...port, port: 82 }] }),
    serviceObject('others', { loadBalancerClass: 'example.com/other' }),
  ];
  for (const each of services) api.add(each);
  api.touch('shop/old', { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } }).sendEvent();
  api.touch('shop/left', { loadBalancer: { ingress: [{ ip: '10.0.0.9' }] } }, 'k3s').sendEvent();
  const source = new FakeSource({ nodes: [nodeObject('a', '10.0.0.1')], services }, 'kubernetes');
  const conditionsOf = (name: string): string[] =>
    (known.get(`shop/${name}`)?.conditions ?? []).map((each) => `${each.type} ${each.status} ${each.reason}`);

  const { advance } = await startControllerHarness(context, { clock, store, source, status });
  await advance(60_000);
  assert.deepEqual(conditionsOf('new'), ['weir.dev/Programmed Unknown FleetUnreachable']);
  assert.deepEqual(conditionsOf('left'), conditionsOf('new'), 'another controller has left its address');
  assert.deepEqual(Object.fromEntries(api.takeWriteCounts()), { 'uid-new': 1, 'uid-left': 1 });
  store.faults.comeBack();
  await advance(5_000);
  assert.deepEqual(conditionsOf('new').slice(0, 2), [
    'weir.dev/Accepted True Accepted',
    'weir.dev/Programmed False WaitingForProxy',
  ]);
  assert.deepEqual(conditionsOf('others'), []);
  assert.deepEqual(api.publishedIPs('shop/old'), ['10.0.0.1'], 'the published address stays');
});
