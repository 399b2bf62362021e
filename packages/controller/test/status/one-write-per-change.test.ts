// A status costs the API server and everybody who watches it: a thousand Services over a fleet in which something happens all the
// time are written when what they say is another, each once.
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
/** A node, or a life on it. */
type Beats = Readonly<Record<string, Partial<Heartbeat>>>;

/** The Services of a tenant stand together: there are many tenants. */
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
  const world = await startControllerHarness(context, { clock, source, status });
  const table = async () => (await world.store.table.read())?.table ?? assert.fail('no table');

  /** Every listener of the node, bound. */
  async function reportOf(node: string): Promise<Heartbeat['listeners']> {
    const own = entriesOf(await table(), 'listener').filter((listener) => listener.node === node);
    return own.map(({ id, service }) => ({ id, service, bound: true, listening: true, error: null }));
  }
  return {
    ...world,
    api,
    reportOf,
    /** Time passes while these proxies beat, and the source learns what the API server says. */
    async live(seconds: number, beats: Beats): Promise<void> {
      for (let second = 0; second < seconds; second += 1) {
        for (const [node, change] of Object.entries(beats)) {
          const listeners = change.listeners ?? (await reportOf(change.node ?? node));
          await world.store.heartbeats.record(heartbeat(node, [], { ...change, listeners }));
        }
        await world.advance(1_000);
      }
      const { services: known } = source.snapshot();
      const published = known.map((each) => {
        const publishedIPs = api.publishedIPs(servicePathOf(each));
        return publishedIPs.join() === each.publishedIPs.join() ? each : { ...each, publishedIPs };
      });
      source.set({ services: published });
      await world.advance(100);
    },
    /** UIDs of the Services that stand on a node. */
    async at(node: string): Promise<string[]> {
      return entriesOf(await table(), 'service').flatMap(({ uid, nodes }) => (nodes.includes(node) ? [uid] : []));
    },
    /** Each of them was written just so often since it was last asked, and no other. */
    wereWritten(what: string, uids: readonly string[], times = 1): void {
      const wanted = new Map([...uids].sort().map((uid) => [uid, times]));
      assert.deepEqual(new Map([...api.takeWriteCounts()].sort()), wanted, what);
    },
  };
}

const ALL: Beats = { a: {}, b: {}, c: {} };
const everybody = Array.from({ length: SERVICES }, (_, index) => `uid-s${index}`);

describe('status of a thousand Services is written once for each change', () => {
  test('while proxies come, go, beat and are upgraded', async (context) => {
    const fleet = await startFleet(context);
    await fleet.advance(1_000);
    fleet.wereWritten('they wait', everybody);
    await fleet.live(1, { a: {} });
    fleet.wereWritten('the first proxy confirms', await fleet.at('a'));
    await fleet.live(14, ALL);
    const onB = new Set(await fleet.at('b'));
    const both = (await fleet.at('c')).filter((uid) => onB.has(uid));
    const writes = fleet.api.takeWriteCounts();
    assert.deepEqual([writes.size, [...new Set(writes.values())]], [SERVICES, [1]], 'the others confirm together');
    assert.ok(both.length > 100 && both.length < SERVICES, 'Services stand on different nodes');
    assert.deepEqual(fleet.api.takeEventCounts(), { Programmed: SERVICES }, 'an Event tells each of its address');

    for (let second = 0; second < 12; second += 1) await fleet.live(1, { ...ALL, a: { connections: second } });
    const deaf = (await fleet.reportOf('a')).map((report) => ({ ...report, listening: false }));
    await fleet.live(2, { ...ALL, a: { listeners: deaf } });
    await fleet.live(60, ALL);
    fleet.wereWritten('they beat', []);

    await fleet.live(5, { a: {}, b: {} });
    fleet.wereWritten('one dies', await fleet.at('c'));
    await fleet.live(3, { ...ALL, c: { life: 2 } });
    fleet.wereWritten('it comes back', await fleet.at('c'));
    for (const draining of [false, true]) {
      await fleet.live(2, { ...ALL, c: { life: 2, draining } });
      await fleet.live(1, { ...ALL, c: { life: 3 } });
    }
    await fleet.live(6, { ...ALL, c: { life: 3 } });
    fleet.wereWritten('it is upgraded', []);

    assert.deepEqual(fleet.api.takeEventCounts(), {}, 'addresses that come and go while it is served are no news');

    const [first, ...rest] = await fleet.reportOf('a');
    assert.ok(first);
    const failing = [{ ...first, bound: false, error: 'port in use' }, ...rest];
    await fleet.live(2, { ...ALL, a: { listeners: failing } });
    fleet.wereWritten('one port fails', [first.service]);
    assert.deepEqual(fleet.api.takeEventCounts(), { FewerNodes: 1 }, 'that somebody else has a port on a node is');
    const others = (await fleet.at('a')).filter((uid) => uid !== first.service);
    await fleet.live(6, { b: {}, c: {} });
    fleet.wereWritten('its proxy falls silent', others);
    await fleet.live(2, { ...ALL, a: { life: 2, applied: null, listeners: [] } });
    fleet.wereWritten('it starts anew', []);
    await fleet.live(3, { ...ALL, a: { life: 2, listeners: failing } });
    fleet.wereWritten('it finds the port taken still', others);
    assert.deepEqual(fleet.api.takeEventCounts(), {}, 'and that is no news');
    await fleet.live(2, ALL);
    fleet.wereWritten('it is bound again', [first.service]);

    fleet.store.faults.goAway();
    await fleet.advance(60_000);
    fleet.store.faults.comeBack();
    await fleet.live(15, ALL);
    fleet.wereWritten('the store was away', []);
    assert.deepEqual(fleet.api.takeEventCounts(), {}, 'nor is a store that comes and goes');
    assert.equal(fleet.api.conflicts, 0);
  });

  test('while endpoints, Services and what others write change', async (context) => {
    const fleet = await startFleet(context);
    await fleet.live(15, ALL);
    fleet.api.takeWriteCounts();
    const scale = async (pods: number): Promise<void> => {
      const slices = fleet.source.snapshot().slices.map((slice, index) => (index === 7 ? sliceOf(7, pods) : slice));
      fleet.source.set({ slices });
      await fleet.live(1, ALL);
    };
    await scale(5);
    fleet.wereWritten('more endpoints', []);
    fleet.api.takeEventCounts();
    await scale(0);
    fleet.wereWritten('none', ['uid-s7']);
    await fleet.live(60, ALL);
    assert.deepEqual(fleet.api.takeEventCounts(), { NoReadyEndpoints: 1 }, 'it is not told each turn');
    await scale(3);
    fleet.wereWritten('some again', ['uid-s7']);

    const young = serviceAt(SERVICES);
    fleet.api.remove(servicePathOf(serviceAt(0)));
    fleet.api.add(young);
    fleet.source.set({ services: [...fleet.source.snapshot().services.slice(1), young] });
    await fleet.advance(300);
    fleet.wereWritten('one comes, one goes', [young.uid]);
    await fleet.live(2, ALL);
    fleet.wereWritten('the new one is confirmed', [young.uid]);

    fleet.api.touch(servicePathOf(serviceAt(1))).sendEvent();
    await fleet.live(2, ALL);
    fleet.wereWritten('somebody annotates one', []);
    fleet.api.touch(servicePathOf(serviceAt(2)), {}).sendEvent();
    await fleet.live(2, ALL);
    fleet.wereWritten('somebody clears a status', ['uid-s2']);

    const late = fleet.api.touch(servicePathOf(serviceAt(7)));
    await scale(0);
    assert.ok(fleet.api.conflicts > 0, 'its version is not known yet');
    fleet.wereWritten('nothing goes through', []);
    late.sendEvent();
    await fleet.live(2, ALL);
    fleet.wereWritten('it is written on top of the change', ['uid-s7']);
  });
});
