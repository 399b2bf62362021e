// An API server that is slow to write status does not delay the reading of heartbeats.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { entriesOf, type Heartbeat } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { eventually, type ProxiedRequest, type ProxiedResponse, startApiServerProxy } from '@weir/testkit';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { leaderOnlyApi } from '../../src/leader/leadership.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import { KubernetesStatus } from '../../src/status/kubernetes-status.ts';
import { heartbeat, startControllerHarness } from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';
import { rawService } from '../fixtures/views.ts';

const COUNT = 40;
/** How many status writes the controller makes at the same time. */
const WRITERS = 8;
const NODES = { a: '10.0.0.1', b: '10.0.0.2' };

interface Patch {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly status: { readonly loadBalancer?: { readonly ingress: readonly { readonly ip: string }[] } };
}

/** Starts a controller with Services on two nodes. The API server does not respond to a PATCH of a status before `respond` is called. */
async function startSlow(context: TestContext) {
  const patches: { readonly name: string; readonly ips: string }[] = [];
  const gate = Promise.withResolvers<void>();
  const responseTo = async ({ method, path, body }: ProxiedRequest): Promise<ProxiedResponse> => {
    if (path.includes('/events/')) return { status: method === 'GET' ? 404 : 200, body: '{}' };
    const { metadata, status } = JSON.parse(body) as Patch;
    const ips = (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join();
    patches.push({ name: metadata.name, ips });
    await gate.promise;
    const resourceVersion = String(Number(metadata.resourceVersion) + 1);
    const spec = { type: 'LoadBalancer' };
    const service = { metadata: { ...metadata, namespace: 'shop', resourceVersion }, spec, status };
    return { status: 200, body: JSON.stringify(service) };
  };
  const proxy = await startApiServerProxy({ server: 'https://127.0.0.1:1', ca: '' });
  context.after(() => proxy.close());
  proxy.intercept(responseTo);
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser({ name: 'slow', server: proxy.server, skipTLSVerify: true }, { name: 'nobody' });
  const [clock, log, leader] = [new ManualClock(), silentLogger(), createFakeLeadership()];
  const kube = new KubeApi(kubeConfig);
  context.after(() => kube.close());
  const api = leaderOnlyApi(kube, leader);
  const events = new EventWriter({ api, clock, log, instance: 'test' });
  const status = new KubernetesStatus({ api, events, clock, log });
  const names = Array.from({ length: COUNT }, (_, index) => `s${index}`);
  for (const name of names) {
    const metadata = { uid: `uid-${name}`, namespace: 'shop', name, resourceVersion: '1' };
    status.observe(`shop/${name}`, { ...rawService(), metadata });
  }
  const port = { name: null, protocol: 'TCP', appProtocol: null, nodePort: null } as const;
  const services = names.map((name, index) => serviceObject(name, { ports: [{ ...port, port: 20_000 + index }] }));
  const source = new FakeSource({ nodes: Object.entries(NODES).map(([name, ip]) => nodeObject(name, ip)), services });
  const harness = await startControllerHarness(context, { clock, source, status, leader });
  // Runs before the controller is closed, because closing waits for the delayed requests.
  context.after(() => gate.resolve());
  const table = (await harness.store.table.read())?.table ?? assert.fail('no table');
  const heartbeatOf = (node: string): Heartbeat => {
    const own = entriesOf(table, 'listener').filter((listener) => listener.node === node);
    const listeners = own.map(({ id, service }) => ({ id, service, bound: true, listening: true, error: null }));
    return heartbeat(node, [], { listeners });
  };
  return {
    ...harness,
    leader,
    patches,
    names,
    respond: gate.resolve,
    /** Records a heartbeat of each node once a second. */
    async run(seconds: number, ...nodes: readonly string[]): Promise<void> {
      for (let second = 0; second < seconds; second += 1) {
        for (const node of nodes) await harness.store.heartbeats.record(heartbeatOf(node));
        await harness.advance(1_000);
      }
    },
  };
}

test('withdraws the address of a proxy that dies while the API server is slow', async (context) => {
  const { patches, names, respond, run, controller } = await startSlow(context);
  await run(1);
  await eventually(() => assert.equal(patches.length, WRITERS));
  await run(15, 'a', 'b');
  await run(320, 'a');
  assert.ok(
    controller.problems().some(({ code, subject }) => code === 'NoNodes' && /^Node\b.*\bb$/.test(subject)),
    'the node is given up after five minutes',
  );
  assert.equal(patches.length, WRITERS, 'the API server has not responded yet');
  respond();
  const addressesByName = (): Map<string, string[]> =>
    new Map(names.map((name) => [name, patches.filter((each) => each.name === name).map(({ ips }) => ips)]));
  await eventually(async () => {
    await run(1, 'a');
    for (const [name, ips] of addressesByName()) assert.equal(ips.at(-1), NODES.a, name);
  });
  const first = new Set(patches.slice(0, WRITERS).map(({ name }) => name));
  for (const [name, ips] of addressesByName()) assert.deepEqual(ips, first.has(name) ? ['', NODES.a] : [NODES.a], name);
});

test('sends no further writes after leadership is lost while the API server is slow', async (context) => {
  const { patches, respond, run, leader } = await startSlow(context);
  await run(1);
  await eventually(() => assert.equal(patches.length, WRITERS));
  leader.set(false);
  respond();
  await run(120, 'a', 'b');
  assert.equal(patches.length, WRITERS);
});
