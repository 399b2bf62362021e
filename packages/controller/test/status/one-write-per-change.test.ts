// Each status write is work for the API server and for every client that watches Services. A thousand Services in a busy fleet must be
// written once for each change of their status, and at no other time.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { entriesOf, type Heartbeat, type ServiceObject, type SliceObject } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { heartbeat, startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeServicesApi, servicePathOf } from '../fixtures/fake-services-api.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const SERVICES = 1_000;
const NODES = ['a', 'b', 'c'];
/** Changes to the fields of a heartbeat, by node. */
type HeartbeatChanges = Readonly<Record<string, Partial<Heartbeat>>>;

const namespaceOf = (index: number): string => `shop-${index % 20}`;

function serviceAt(index: number): ServiceObject {
  const port = { name: null, port: 20_000 + index, protocol: 'TCP', appProtocol: null, nodePort: null } as const;
  return serviceObject(`s${index}`, { namespace: namespaceOf(index), ports: [port] });
}

function sliceOf(index: number, pods: number): SliceObject {
  const endpoint = { zone: null, ready: true, serving: true, terminating: false };
  return {
    uid: `uid-slice-${index}`,
    namespace: namespaceOf(index),
    name: `s${index}-1`,
    labels: {},
    annotations: {},
    createdAt: null,
    serviceName: `s${index}`,
    addressType: 'IPv4',
    ports: [{ name: null, port: 8080, protocol: 'TCP' }],
    endpoints: Array.from({ length: pods }, (_, pod) => ({
      ...endpoint,
      addresses: [`10.1.${index % 250}.${pod + 1}`],
    })),
  };
}

async function startFleet(context: TestContext) {
  const clock = new ManualClock();
  const api = new FakeServicesApi();
  const log = silentLogger();
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  api.onService = (key, raw) => status.observe(key, raw);
  const services = Array.from({ length: SERVICES }, (_, index) => serviceAt(index));
  for (const service of services) api.add(service);
  const source = new FakeSource({
    nodes: NODES.map((name, index) => nodeObject(name, `10.0.0.${index + 1}`)),
    services,
    slices: services.map((_, index) => sliceOf(index, 2)),
  });
  const harness = await startControllerHarness(context, { clock, source, status });
  const table = async () => (await harness.store.table.read())?.table ?? assert.fail('no table');

  /** Returns reports in which every listener of the node is bound. */
  async function reportOf(node: string): Promise<Heartbeat['listeners']> {
    const own = entriesOf(await table(), 'listener').filter((listener) => listener.node === node);
    return own.map(({ id, service }) => ({ id, service, bound: true, listening: true, error: null }));
  }
  return {
    ...harness,
    api,
    reportOf,
    /**
     * Lets time pass while the proxies in `changes` send heartbeats. Then copies the published addresses from the API server to the
     * source.
     */
    async run(seconds: number, changes: HeartbeatChanges): Promise<void> {
      for (let second = 0; second < seconds; second += 1) {
        for (const [node, change] of Object.entries(changes)) {
          const listeners = change.listeners ?? (await reportOf(change.node ?? node));
          await harness.store.heartbeats.record(heartbeat(node, [], { ...change, listeners }));
        }
        await harness.advance(1_000);
      }
      const services = source.snapshot().services.map((each) => {
        const publishedIPs = api.publishedIPs(servicePathOf(each));
        return publishedIPs.join() === each.publishedIPs.join() ? each : { ...each, publishedIPs };
      });
      source.set({ services });
      await harness.advance(100);
    },
    /** Returns the UIDs of the Services that are allocated to a node. */
    async at(node: string): Promise<string[]> {
      return entriesOf(await table(), 'service').flatMap(({ uid, nodes }) => (nodes.includes(node) ? [uid] : []));
    },
    /** Asserts that exactly these Services were written since the last call, each of them `times` times. */
    wereWritten(what: string, uids: readonly string[], times = 1): void {
      const expected = new Map([...uids].sort().map((uid) => [uid, times]));
      assert.deepEqual(new Map([...api.takeWriteCounts()].sort()), expected, what);
    },
  };
}

const ALL: HeartbeatChanges = { a: {}, b: {}, c: {} };
const allUids = Array.from({ length: SERVICES }, (_, index) => `uid-s${index}`);

describe('the status of a thousand Services is written once for each change', () => {
  test('while proxies start, die, report and are upgraded', async (context) => {
    const fleet = await startFleet(context);
    await fleet.advance(1_000);
    fleet.wereWritten('Services wait for proxies', allUids);
    await fleet.run(1, { a: {} });
    fleet.wereWritten('the first proxy confirms', await fleet.at('a'));
    await fleet.run(14, ALL);
    const onB = new Set(await fleet.at('b'));
    const onBoth = (await fleet.at('c')).filter((uid) => onB.has(uid));
    const writes = fleet.api.takeWriteCounts();
    assert.deepEqual(
      [writes.size, [...new Set(writes.values())]],
      [SERVICES, [1]],
      'the other proxies confirm together',
    );
    assert.ok(onBoth.length > 100 && onBoth.length < SERVICES, 'Services are allocated to different nodes');
    assert.deepEqual(
      fleet.api.takeEventCounts(),
      { Programmed: SERVICES },
      'each Service gets an Event about its address',
    );

    for (let second = 0; second < 12; second += 1) await fleet.run(1, { ...ALL, a: { connections: second } });
    const notListening = (await fleet.reportOf('a')).map((report) => ({ ...report, listening: false }));
    await fleet.run(2, { ...ALL, a: { listeners: notListening } });
    await fleet.run(60, ALL);
    fleet.wereWritten('proxies send heartbeats', []);

    await fleet.run(5, { a: {}, b: {} });
    fleet.wereWritten('a proxy dies', await fleet.at('c'));
    await fleet.run(3, { ...ALL, c: { life: 2 } });
    fleet.wereWritten('the proxy comes back', await fleet.at('c'));
    for (const draining of [false, true]) {
      await fleet.run(2, { ...ALL, c: { life: 2, draining } });
      await fleet.run(1, { ...ALL, c: { life: 3 } });
    }
    await fleet.run(6, { ...ALL, c: { life: 3 } });
    fleet.wereWritten('the proxy is upgraded', []);

    assert.deepEqual(fleet.api.takeEventCounts(), {}, 'no Event if a served Service gains or loses an address');

    const [first, ...rest] = await fleet.reportOf('a');
    assert.ok(first);
    const failing = [{ ...first, bound: false, error: 'port in use' }, ...rest];
    await fleet.run(2, { ...ALL, a: { listeners: failing } });
    fleet.wereWritten('one port fails', [first.service]);
    assert.deepEqual(fleet.api.takeEventCounts(), { FewerNodes: 1 }, 'an Event that another process has the port');
    const others = (await fleet.at('a')).filter((uid) => uid !== first.service);
    await fleet.run(6, { b: {}, c: {} });
    fleet.wereWritten('the proxy falls silent', others);
    await fleet.run(2, { ...ALL, a: { life: 2, applied: null, listeners: [] } });
    fleet.wereWritten('the proxy starts again', []);
    await fleet.run(3, { ...ALL, a: { life: 2, listeners: failing } });
    fleet.wereWritten('the port is still in use', others);
    assert.deepEqual(fleet.api.takeEventCounts(), {}, 'no Event for the same failure');
    await fleet.run(2, ALL);
    fleet.wereWritten('the port is bound again', [first.service]);

    fleet.store.faults.goAway();
    await fleet.advance(60_000);
    fleet.store.faults.comeBack();
    await fleet.run(15, ALL);
    fleet.wereWritten('the store was unreachable', []);
    assert.deepEqual(fleet.api.takeEventCounts(), {}, 'no Event for an outage of the store');
    assert.equal(fleet.api.conflicts, 0);
  });

  test('while endpoints and Services change, and others write to the status', async (context) => {
    const fleet = await startFleet(context);
    await fleet.run(15, ALL);
    fleet.api.takeWriteCounts();
    const scale = async (pods: number): Promise<void> => {
      const slices = fleet.source.snapshot().slices.map((slice, index) => (index === 7 ? sliceOf(7, pods) : slice));
      fleet.source.set({ slices });
      await fleet.run(1, ALL);
    };
    await scale(5);
    fleet.wereWritten('more endpoints', []);
    fleet.api.takeEventCounts();
    await scale(0);
    fleet.wereWritten('no endpoints', ['uid-s7']);
    await fleet.run(60, ALL);
    assert.deepEqual(fleet.api.takeEventCounts(), { NoReadyEndpoints: 1 }, 'one Event only');
    await scale(3);
    fleet.wereWritten('endpoints again', ['uid-s7']);

    const newService = serviceAt(SERVICES);
    fleet.api.remove(servicePathOf(serviceAt(0)));
    fleet.api.add(newService);
    fleet.source.set({ services: [...fleet.source.snapshot().services.slice(1), newService] });
    await fleet.advance(300);
    fleet.wereWritten('a Service is created, another is deleted', [newService.uid]);
    await fleet.run(2, ALL);
    fleet.wereWritten('the new Service is confirmed', [newService.uid]);

    fleet.api.touch(servicePathOf(serviceAt(1))).sendEvent();
    await fleet.run(2, ALL);
    fleet.wereWritten('a Service gets an annotation', []);
    fleet.api.touch(servicePathOf(serviceAt(2)), {}).sendEvent();
    await fleet.run(2, ALL);
    fleet.wereWritten('a status is cleared', ['uid-s2']);

    const late = fleet.api.touch(servicePathOf(serviceAt(7)));
    await scale(0);
    assert.ok(fleet.api.conflicts > 0, 'the watch has not delivered the new version yet');
    fleet.wereWritten('the write conflicts', []);
    late.sendEvent();
    await fleet.run(2, ALL);
    fleet.wereWritten('the status is written to the new version', ['uid-s7']);
  });
});
