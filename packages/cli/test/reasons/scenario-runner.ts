// Runs a scenario with controller, store and console in this process and with a manual clock. The scenario says which heartbeats the
// proxies send. The result of a step is what a tenant sees: status and Events of the Service, and `weir explain`.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startConsole, storeSuspensionWriter } from '@weir/console';
import { EventWriter, KubernetesStatus, openDirectorySource, startController } from '@weir/controller';
import {
  DEFAULT_FLEET_SETTINGS,
  entriesOf,
  type Heartbeat,
  minuteOf,
  type Problem,
  type RoutingTable,
  type Suspension,
  suspensionFor,
} from '@weir/model';
import { ManualClock, Secret, silentLogger } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { makeCertificate, temporaryDirectory } from '@weir/testkit';
import { runWeirInProcess } from '../fixtures/weir-in-process.ts';
import { FakeServiceApi, type ReportedEvent, type ReportedStatus } from './fake-service-api.ts';
import { type Manifest, manifestName, type Scenario, type Step } from './scenario.ts';

export interface StepResult {
  readonly status: ReportedStatus;
  /** The Events about the Service since the previous step. */
  readonly events: readonly ReportedEvent[];
  /** The output of `weir explain`. */
  readonly explanation: string;
  /** The problems of the Service. */
  readonly problems: readonly Problem[];
}

export interface ScenarioRunner extends AsyncDisposable {
  runStep(step: Step): Promise<StepResult>;
}

export async function startScenarioRunner({
  trust,
  sharedPorts,
  secretAccess,
}: Omit<Scenario, 'steps'>): Promise<ScenarioRunner> {
  const directory = temporaryDirectory('scene');
  const clock = new ManualClock();
  const log = silentLogger();
  const store = new MemoryStore({ clock });
  const source = await openDirectorySource({
    paths: [directory.path],
    clock,
    watched: false,
    fleetSecret: new Secret('a fleet secret for the scenarios only'),
  });
  const serviceApi = new FakeServiceApi();
  const status = new KubernetesStatus({
    api: serviceApi,
    events: new EventWriter({ api: serviceApi, clock, log, instance: 'test' }),
    clock,
    log,
  });
  serviceApi.setSink(status);
  const settings = {
    ...DEFAULT_FLEET_SETTINGS,
    sharedPorts,
    secretAccess: secretAccess === 'namespaces' ? { kind: secretAccess, namespaces: [] } : { kind: secretAccess },
    trust: trust === 'files' ? { kind: trust } : { kind: trust, serviceCidrs: ['10.96.0.0/16'] },
  };
  const controller = startController({ source, store, settings, status, clock, log });
  const suspensionWriter = storeSuspensionWriter({ suspensionStore: store.suspensions, clock });
  const shared = { store, suspensionWriter, clock, log, fleet: 'test', auth: { kind: 'none' } } as const;
  const console = await startConsole({ ...shared, host: '127.0.0.1', port: 0 });
  const objects = new Map<string, object>();

  async function sendHeartbeats(step: Step): Promise<void> {
    const table = (await store.table.read())?.table;
    if (table === undefined) return;
    const { suspensions } = await store.suspensions.read();
    for (const { name } of entriesOf(table, 'node')) {
      const error = step.proxies[name] ?? null;
      if (error === 'silent') continue;
      const listeners = listenerReportsFor(table, { node: name, error, cutoffs: suspensions, now: clock.now() });
      await store.heartbeats.record({ ...HEARTBEAT, node: name, listeners });
    }
  }
  const dayFromNow = (days: number): Date => new Date(clock.now() + days * 86_400_000);
  async function use({ used }: Step): Promise<void> {
    const slots = Object.entries(used).map(([tenant, receivedBytes]) => {
      const counters = { receivedBytes, sentBytes: 0, connections: 1, requests: 0 };
      const points = [{ minute: minuteOf(clock.now()), counters }];
      return { service: `uid-of-${tenant}`, tenant, namespace: tenant, name: 'web', points };
    });
    if (slots.length > 0) await store.usage.flush({ node: 'n1', life: 1, slots });
  }

  return {
    async runStep(step) {
      for (const name of step.remove) objects.delete(name);
      const secrets = Object.entries(step.certificates).map(([name, { days }]) =>
        tlsSecret(name, step, days.map(dayFromNow)),
      );
      for (const object of [...step.objects, ...secrets]) objects.set(manifestName(object), object);
      const items = [...objects.values()];
      writeFileSync(join(directory.path, 'scene.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
      await source.scan();
      serviceApi.setServices(source.snapshot().services);
      serviceApi.foreignController = step.foreignController;
      if (step.store === 'away') store.faults.goAway();
      else store.faults.comeBack();
      await clock.advance(1_000);
      if (step.store === 'up') await use(step);
      for (let second = 0; second < step.seconds; second += 1) {
        if (step.store === 'up') await sendHeartbeats(step);
        await clock.advance(1_000);
      }
      await console.refresh();
      const { stdout, stderr } = await runWeirInProcess(['explain', step.about, '--server', console.url]);
      return {
        status: serviceApi.statusOf(step.about),
        events: serviceApi.takeEventsOf(step.about),
        explanation: `${stdout}${stderr}`.replaceAll(directory.path, 'manifests'),
        problems: controller.problems().filter(({ subject }) => subject === `Service ${step.about}`),
      };
    },
    async [Symbol.asyncDispose]() {
      await console.close();
      await controller.close();
      await source.close();
      await store.close();
      await directory.close();
    },
  };
}

function tlsSecret(name: string, { about }: Step, [notBefore, notAfter]: readonly Date[]): Manifest {
  assert.ok(notBefore && notAfter, 'a certificate needs two days');
  const { chain, key } = makeCertificate({ name: 'web.example', notBefore, notAfter });
  const [namespace = ''] = about.split('/');
  const stringData = { 'tls.crt': chain, 'tls.key': key };
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/tls',
    stringData,
  };
  return secret;
}

const HEARTBEAT = {
  life: 1,
  version: '0',
  startedAt: 0,
  draining: false,
  addresses: [],
  applied: null,
  cutoffSequence: 0,
  workers: 1,
  connections: 0,
} satisfies Partial<Heartbeat>;

interface ProxyState {
  readonly node: string;
  readonly error: string | null;
  readonly cutoffs: readonly Suspension[];
  readonly now: number;
}

/**
 * Returns the listeners as a proxy reports them. A port without a ready endpoint and a port of a suspended Service are bound, but do not
 * listen.
 */
function listenerReportsFor(table: RoutingTable, { node, error, cutoffs, now }: ProxyState): Heartbeat['listeners'] {
  const services = new Map(entriesOf(table, 'service').map((each) => [each.uid, each]));
  const ready = new Set(
    entriesOf(table, 'endpoints')
      .filter(({ endpoints }) => endpoints.length > 0)
      .map(({ service, protocol, port }) => `${service} ${protocol} ${port}`),
  );
  const listeners = entriesOf(table, 'listener').filter((listener) => listener.node === node);
  return listeners.map(({ id, service, protocol, port }) => {
    const entry = services.get(service);
    const isCutOff = entry !== undefined && suspensionFor(cutoffs, entry, now) !== undefined;
    const listening = error === null && ready.has(`${service} ${protocol} ${port}`) && !isCutOff;
    return { id, service, bound: error === null, listening, error };
  });
}
